# SPDX-License-Identifier: Apache-2.0

"""The dialog of Horizon that launches servers, in a real browser.

Horizon is real, and so is its dialog; what is behind it says
:mod:`tests.integration.dashboard.fake_openstack`.
"""

import pathlib

from selenium.webdriver.support import ui

from tests.integration.dashboard import browser
from tests.integration.dashboard import fake_openstack
from tests.integration.dashboard import test_pages

NOW = 'starts now'
STARTS = 'project/fairness_starts/'
UNKNOWN = 'waits; it is not known how long'
ABOUT = 'Only vCPUs, memory and disk are counted.'


def dialog(page, step):
    """Open the dialog, and go to a step of it."""
    page.open('project/instances/')
    page.wait_for('#instances__action_launch-ng').click()
    page.wait_for('.wizard-nav')
    go_to_step(page, step)


def go_to_step(page, step):
    """Go to a step; what was asked for is there by then."""
    path = f'//ul[contains(@class, "nav-stacked")]//a[contains(., "{step}")]'
    ui.WebDriverWait(page.driver, browser.WAIT_S).until(
        lambda driver: driver.find_element('xpath', path).is_displayed()
    )
    page.driver.find_element('xpath', path).click()


def texts_of_flavors(page, *flavors):
    """What is said of each flavor that is listed."""
    script = """
    const rows = [...document.querySelectorAll('.step tbody tr')];
    return rows.filter(row => row.querySelector('.fairness-start')).map(
        row => [...row.querySelectorAll('hz-cell')].slice(0, 2).map(
            cell => cell.textContent.trim()));
    """
    ui.WebDriverWait(page.driver, browser.WAIT_S).until(
        lambda driver: len(driver.execute_script(script)) == len(flavors)
    )
    found = dict(page.driver.execute_script(script))
    return [found[each] for each in flavors]


def test_the_dialog_says_which_flavors_start_now(tmp_path, endpoint, site):
    cloud = fake_openstack.FakeOpenStack(tmp_path)
    endpoint.show(cloud)
    with browser.logged_in_browser(site, 'alice') as page:
        dialog(page, 'Flavor')
        assert texts_of_flavors(page, 'two', 'nine') == [UNKNOWN, UNKNOWN]
        cloud.start_late('nine', 7200.0)
        cloud.world.cloud.add_host('cmp2', 3, zone='z2')
        cloud.cycle()
        page.width(1280)
        text = page.open(STARTS)
        assert 'two starts now, up to 1 server z1: 0, z2: 1' in text
        assert 'nine waits about 2 h z1: 0, z2: 0' in text
        shoot(page, 'alice-starts')
        dialog(page, 'Flavor')
        assert texts_of_flavors(page, 'two', 'nine') == [
            NOW,
            'waits about 2 h',
        ]
        assert ABOUT in page.wait_for('.step .help-block').text
        shoot(page, 'alice-launch')
        # One server of it starts, in one of both zones.
        go_to_step(page, 'Details')
        page.fill('#instance-count', '2')
        assert texts_of_flavors(page, 'two', 'nine') == [
            UNKNOWN,
            'waits about 2 h',
        ]
        page.fill('#instance-count', '1')
        for zone, told in (('z1', UNKNOWN), ('z2', NOW)):
            zones = page.wait_for('#availability-zone')
            ui.Select(zones).select_by_visible_text(zone)
            assert texts_of_flavors(page, 'two', 'nine')[0] == told


def shoot(page, name):
    """Keep pictures of what is open, if pictures are wanted."""
    if not test_pages.PICTURES:
        return
    for pixels in test_pages.WIDTHS:
        page.width(pixels)
        kept = f'{name}-{pixels}.png'
        page.shoot(pathlib.Path(test_pages.PICTURES) / kept)
    page.width(test_pages.WIDTHS[0])


def test_the_launch_dialog_is_unchanged_without_the_service(
    tmp_path, endpoint, site
):
    cloud = fake_openstack.FakeOpenStack(tmp_path, has_queue=False)
    endpoint.show(cloud)
    with browser.logged_in_browser(site, 'alice') as page:
        dialog(page, 'Flavor')
        text = page.wait_for('.step table').text
        assert 'vcpus' in text.lower()
        path = f'/{STARTS}flavors/'
        answer = page.asked(path)
        assert answer['status'] == 503
        assert 'is not available now' in answer['json']['problem']
        assert '.fairness-start' not in page.source
        assert ABOUT not in page.text
    cloud.world.close()


def test_the_launch_dialog_asks_with_the_rights_of_the_user(cloud, site):
    path = f'/{STARTS}flavors/'
    with browser.logged_in_browser(site, 'carol') as page:
        page.open(STARTS)
        answer = page.asked(path)
        assert answer['status'] == 200
        assert answer['json']['flavors'] == [
            {'name': name, 'starts': 0, 'zones': {'z1': 0}, 'later': UNKNOWN}
            for name in ('nine', 'two')
        ]
        page.log_out()
        page.driver.get(f'{site}/auth/login/')
        assert 'flavors' not in str(page.asked(path)['json'])
