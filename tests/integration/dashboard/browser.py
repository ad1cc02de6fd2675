# SPDX-License-Identifier: Apache-2.0

"""A real Chromium without a window, as one user of Horizon."""

from collections.abc import Iterator
import contextlib
import pathlib
import shutil
from typing import Any

import axe_core_python
from selenium import webdriver
from selenium.webdriver.common import keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support import ui

from tests.integration.dashboard import fake_keystone

WAIT_S = 20.0
HEIGHT = 900
TABS = 200
"""More than a page has controls."""

_AXE = pathlib.Path(axe_core_python.__file__).parent / 'axe.min.js'
_RUN_AXE = """
const finish = arguments[0];
axe.run('.fairness').then(
    found => finish(found.violations.map(
        each => each.id + ': ' + each.nodes.map(node => node.html).join())),
    error => finish([String(error)]));
"""
_ASK = """
const [path, finish] = arguments;
fetch(path, {headers: {'X-Requested-With': 'XMLHttpRequest'}}).then(
    answer => answer.json().catch(() => null).then(
        json => finish({status: answer.status, json: json})));
"""
_IS_MARKED = """
const seen = getComputedStyle(arguments[0]);
return seen.outlineStyle !== 'none' || seen.boxShadow !== 'none';
"""
_FLAGS = (
    '--headless=new',
    '--no-sandbox',
    '--disable-dev-shm-usage',
    '--disable-gpu',
)


class Browser:
    """A user who is logged in.

    :param driver: of Selenium.
    :param site: URL of Horizon.
    """

    def __init__(self, driver: Any, site: str) -> None:
        self.driver = driver
        self._site = site

    def log_in(
        self, user: str, password: str = fake_keystone.PASSWORD
    ) -> None:
        """Fill in the form of Horizon."""
        self.driver.get(f'{self._site}/auth/login/?next=/settings/')
        self.find('#id_username').send_keys(user)
        self.find('#id_password').send_keys(password)
        button = self.find('#loginBtn')
        button.click()
        self._until(lambda: _is_stale(button))
        assert '/auth/login/' not in self.driver.current_url, self.text

    def open(self, path: str) -> str:
        """Open a page, and give its text without that of closed parts."""
        self.driver.get(f'{self._site}/{path}')
        return self.text

    @property
    def text(self) -> str:
        """Text of the page as it is seen."""
        return str(self.find('body').text)

    @property
    def source(self) -> str:
        """All that the page has, seen or not."""
        return str(self.driver.page_source)

    def find(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def fill(self, selector: str, text: str) -> None:
        """Write into the first field of a CSS selector."""
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def press(self, label: str) -> None:
        """Press the first button of a label, and wait for the next page."""
        path = f'//*[self::button or self::summary][contains(., "{label}")]'
        found = self.driver.find_element(By.XPATH, path)
        is_button = found.tag_name == 'button'
        found.click()
        if is_button:
            self._until(lambda: _is_stale(found))

    def press_by_keys(self, label: str) -> None:
        """The same as to press, without a mouse; what has the keys shows it.

        :raises AssertionError: if no key leads there.
        """
        for _ in range(TABS):
            self._key(keys.Keys.TAB)
            found = self.driver.switch_to.active_element
            if label in found.text:
                break
        else:
            raise AssertionError(f'no key leads to "{label}"')
        assert self.driver.execute_script(_IS_MARKED, found), label
        is_button = found.tag_name == 'button'
        self._key(keys.Keys.ENTER)
        if is_button:
            self._until(lambda: _is_stale(found))

    def _key(self, key: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(key).perform()

    def follow(self, label: str) -> None:
        """Follow the first link of a text, and wait for its page."""
        found = self.driver.find_element(
            By.XPATH, f'//*[@class="fairness"]//a[contains(., "{label}")]'
        )
        found.click()
        self._until(lambda: _is_stale(found))

    def wait_for(self, selector: str) -> Any:
        """The first element of a CSS selector, once a script shows it."""
        self._until(
            lambda: [e for e in self._all(selector) if e.is_displayed()]
        )
        return next(e for e in self._all(selector) if e.is_displayed())

    def _all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def asked(self, path: str) -> dict[str, Any]:
        """Status and JSON of what a script of the page asks Horizon."""
        found: dict[str, Any] = self.driver.execute_async_script(_ASK, path)
        return found

    def log_out(self) -> None:
        """Forget who is logged in."""
        # A request under way would bring the cookie back.
        self.driver.get('about:blank')
        self.driver.execute_cdp_cmd('Network.clearBrowserCookies', {})

    def width(self, pixels: int) -> None:
        """Make the window as wide as a screen."""
        self.driver.execute_cdp_cmd(
            'Emulation.setDeviceMetricsOverride',
            {
                'width': pixels, 'height': HEIGHT, 'deviceScaleFactor': 1,
                'mobile': False,
            },
        )  # fmt: skip

    def is_too_wide(self) -> bool:
        """Tell whether readers have to scroll to the right."""
        wider = 'return document.documentElement.scrollWidth > innerWidth'
        return bool(self.driver.execute_script(wider))

    def faults(self) -> list[str]:
        """Faults that axe-core finds in what the plugin shows."""
        self.driver.execute_script(_AXE.read_text('utf-8'))
        found: list[str] = self.driver.execute_async_script(_RUN_AXE)
        return found

    def shoot(self, path: pathlib.Path) -> None:
        """Keep a picture of the page."""
        self.driver.save_screenshot(str(path))

    def _until(self, is_so: Any) -> None:
        ui.WebDriverWait(self.driver, WAIT_S).until(lambda _: is_so())


def _is_stale(element: Any) -> bool:
    try:
        element.is_enabled()
    except Exception:
        return True
    return False


@contextlib.contextmanager
def logged_in_browser(
    site: str, user: str, password: str = fake_keystone.PASSWORD
) -> Iterator[Browser]:
    """A browser in which a user is logged in."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium') or ''
    for flag in _FLAGS:
        options.add_argument(flag)
    service = webdriver.ChromeService(shutil.which('chromedriver'))
    driver = webdriver.Chrome(options, service)
    try:
        made = Browser(driver, site)
        made.log_in(user, password)
        yield made
    finally:
        driver.quit()
