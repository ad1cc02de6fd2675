# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The exchange of a cloud: reports by fanout over oslo.messaging.

How the agent uses it::

    limits = bounds.from_options(conf.fairness_exchange)
                               # .domain, .view_max_age, ...; raises
                               # ConfigurationError
    transport = oslo_messaging.get_rpc_transport(conf, url)
    exchange = mesh.MeshExchange(
        transport,
        host=..., boot_id=..., interval_s=...,
        limits=limits,
        desired=state,         # desired_state.DesiredState
    )
    exchange.start()           # returns at once, also with a dead broker
    exchange.publish(report)   # returns at once
    exchange.view(now_s, metric)   # metric: of this round; reports of others
                               # are left out and named ('' = that of the
                               # own newest report)
    exchange.statistics()      # -> Mapping[str, int]: sent, send_failed,
                               # replaced, received, accepted,
                               # refused_<reason> ...
    exchange.stop()            # bounded; the transport is not cleaned up

Topic ``fairness-reports``, exchange name = domain, fanout cast
``report(report=<codec message>)``, version 1.0, no namespace.
"""
