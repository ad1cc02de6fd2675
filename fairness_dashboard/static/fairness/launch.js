// SPDX-License-Identifier: Apache-2.0

// The dialog of Horizon that launches servers says of each flavor whether a
// server of it starts now. Its workflow is extended as AngularJS extends
// services: Horizon stays as it is.
(function () {
  'use strict';

  var LAUNCH = 'horizon.dashboard.project.workflow.launch-instance';
  var STEP = 'flavor';
  var TEMPLATE = 'fairness/launch-flavor.html';

  angular
    .module('fairness.launch', [LAUNCH])
    .config(extend)
    .factory('fairness.launch.starts', makeStarts)
    .filter('fairnessStart', makeFilter)
    .directive('fairnessStarts', makeDirective);

  extend.$inject = ['$provide'];

  // A decorator, so that the workflow is made when a dialog is opened, and not
  // on every page.
  function extend($provide) {
    $provide.decorator(LAUNCH + '.workflow', wrapStep);
  }

  wrapStep.$inject = ['$delegate', '$templateCache'];

  // The step stays that of Horizon, within an element of ours.
  function wrapStep(workflow, $templateCache) {
    var step = workflow.steps.filter(function (each) {
      return each.id === STEP;
    })[0];
    if (step) {
      $templateCache.put(TEMPLATE,
        '<div fairness-starts class="fairness-launch">' +
        '<ng-include src="\'' + step.templateUrl + '\'"></ng-include>' +
        '<p class="help-block" ng-bind="fairnessAbout"></p></div>');
      workflow.replace(STEP, angular.extend({}, step, {templateUrl: TEMPLATE}));
    }
    return workflow;
  }

  makeStarts.$inject = ['$http', '$window', 'launchInstanceModel'];

  function makeStarts($http, $window, model) {
    var known = {words: {}, flavors: Object.create(null)};
    return {load: load, say: say};

    // Tell whether the service answered. Without it nothing is shown.
    function load() {
      var url = $window.WEBROOT + 'project/fairness_starts/flavors/';
      return $http.get(url).then(function (answer) {
        known.words = answer.data;
        known.flavors = Object.create(null);
        answer.data.flavors.forEach(function (each) {
          known.flavors[each.name] = each;
        });
        return known.words;
      });
    }

    // What is said of a flavor, for the servers and the zone that are chosen.
    function say(name) {
      var flavor = known.flavors[name];
      if (!flavor) {
        return '';
      }
      var wanted = model.newInstanceSpec;
      var starts = flavor.starts;
      if (wanted.availability_zone && flavor.zones) {
        starts = flavor.zones[wanted.availability_zone] || 0;
      }
      return starts >= Math.max(1, wanted.instance_count || 1)
        ? known.words.now : flavor.later;
    }
  }

  makeFilter.$inject = ['fairness.launch.starts'];

  function makeFilter(starts) {
    // It depends on what else is chosen in the dialog.
    starts.say.$stateful = true;
    return starts.say;
  }

  makeDirective.$inject = ['fairness.launch.starts'];

  function makeDirective(starts) {
    return {restrict: 'A', link: link};

    function link(scope, element) {
      scope.$on('$includeContentLoaded', function () {
        var inner = element[0].querySelector('[ng-controller]');
        var step = inner && angular.element(inner).controller('ngController');
        if (step && step.availableTableConfig) {
          starts.load().then(function (words) {
            scope.fairnessAbout = words.about;
            addColumn(step.availableTableConfig.columns, words);
            addColumn(step.allocatedTableConfig.columns, words);
          }, angular.noop);
        }
      });
    }
  }

  function addColumn(columns, words) {
    // Behind the name of the flavor.
    columns.splice(1, 0, {
      id: 'fairness-start',
      title: words.title,
      priority: 1,
      template: '<span class="fairness-start">' +
        '{$ item.name | fairnessStart $}</span>'
    });
  }
})();
