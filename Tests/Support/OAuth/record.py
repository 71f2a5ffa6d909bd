"""What was asked and answered since the start or the last reset: names and counts, never a token."""

import json
import threading
import time
from collections import Counter, defaultdict, deque

MOST_REQUESTS = 1000


class Record:
    def __init__(self, token_path):
        self.token_path = token_path
        self.lock = threading.Lock()
        self.start = time.monotonic()
        self.running = Counter()
        self.clear()

    def clear(self):
        with self.lock:
            self.requests = deque(maxlen=MOST_REQUESTS)
            self.asked = Counter()
            self.answered = defaultdict(Counter)
            self.at_once = Counter(self.running)

    def begin(self, request):
        """The entry, which the answer completes."""
        entry = {
            "at": round(time.monotonic() - self.start, 6),
            "method": request.method,
            "path": request.path,
            "headers": request.header_names,
            "query": sorted(request.query),
            "form": sorted(request.form),
            "grant_type": request.grant_type or None,
            "length": len(request.body),
            "authorization": request.authorization,
            "status": None,
            "fault": None,
        }
        with self.lock:
            self.requests.append(entry)
            if request.path == self.token_path:
                self.asked[request.grant_type] += 1
                self.running[request.grant_type] += 1
                self.at_once[request.grant_type] = max(
                    self.at_once[request.grant_type], self.running[request.grant_type]
                )
        return entry

    def end(self, request):
        with self.lock:
            if request.path == self.token_path:
                self.running[request.grant_type] -= 1

    def application_answered(self, request, answer):
        if request.path != self.token_path:
            return
        outcome = str(answer.status)
        if answer.status >= 400:
            try:
                outcome += " " + json.loads(answer.body)["error"]
            except (ValueError, KeyError, TypeError):
                pass
        with self.lock:
            self.answered[request.grant_type][outcome] += 1

    def counts(self):
        with self.lock:
            return {
                "requests": dict(self.asked),
                "answers": {grant: dict(outcomes) for grant, outcomes in self.answered.items()},
                "at_once": {grant: count for grant, count in self.at_once.items() if count},
            }

    def last(self, count):
        with self.lock:
            return list(self.requests)[-count:] if count else []
