"""A person at a browser: follows redirections, keeps cookies, fills in forms, and never leaves the loopback.

Usage: browser.py NAME PASSWORD URL, to approve what the page at URL asks. Prints the status of the last page.
"""

import http.cookiejar
import sys
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser

LONGEST_WAIT = 3600
MOST_PAGES = 10


class Form(HTMLParser):
    """The first form of a page: where it goes, its fields, its buttons."""

    def __init__(self, page):
        super().__init__()
        self.found = False
        self.inside = False
        self.action = ""
        self.fields = {}
        self.buttons = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and not self.found:
            self.found = self.inside = True
            self.action = attributes.get("action", "")
        elif self.inside and (tag == "button" or attributes.get("type") == "submit"):
            self.buttons.append((attributes.get("name"), attributes.get("value", "")))
        elif self.inside and tag == "input" and attributes.get("name"):
            self.fields[attributes["name"]] = attributes.get("value", "")

    def handle_endtag(self, tag):
        if tag == "form":
            self.inside = False

    def button(self, approve):
        """What pressing the button adds. A consent page has one that allows and one without a name; a device page has
        two of one name; others have one."""
        wanted = [("allow", None), ("action", "accept")] if approve else [(None, None), ("action", "deny")]
        for name, value in wanted:
            for button in self.buttons:
                if button[0] == name and value in (None, button[1]):
                    return {button[0]: button[1]} if button[0] else {}
        return {}


class Page:
    def __init__(self, response):
        self.url = response.url
        self.status = response.status
        self.body = response.read().decode("utf-8", "replace")


class LoopbackOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, file, code, message, headers, url):
        check(url)
        return super().redirect_request(request, file, code, message, headers, url)


def check(url):
    if urllib.parse.urlsplit(url).hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError("not on the loopback")


class Browser:
    def __init__(self, name, password):
        self.name = name
        self.password = password
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
            LoopbackOnly(),
        )

    def open(self, url, form=None, referrer=None):
        check(url)
        data = urllib.parse.urlencode(form).encode() if form is not None else None
        request = urllib.request.Request(url, data, {"Referer": referrer} if referrer else {})
        try:
            return Page(self.opener.open(request, timeout=LONGEST_WAIT))
        except urllib.error.HTTPError as error:
            return Page(error)

    def submit(self, page, form, fields):
        action = urllib.parse.urljoin(page.url, form.action)
        return self.open(action, form.fields | fields, page.url)

    def answer(self, url, approve=True, user_code=None):
        """From a page to the one that asks no more; the pages."""
        pages = [self.open(url)]
        while (form := Form(pages[-1].body)).found and len(pages) < MOST_PAGES:
            fields = form.button(approve)
            if "password" in form.fields:
                fields |= {"username": self.name, "password": self.password}
            elif "user_code" in form.fields and user_code:
                fields["user_code"] = user_code
            pages.append(self.submit(pages[-1], form, fields))
            # The same page again shows the mistake.
            if pages[-1].url == pages[-2].url and Form(pages[-1].body).fields.keys() == form.fields.keys():
                break
        return pages


if __name__ == "__main__":
    print(Browser(sys.argv[1], sys.argv[2]).answer(sys.argv[3])[-1].status)
