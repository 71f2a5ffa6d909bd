"""What a test has its keeper do, line by line."""

import sys
import traceback


def serve(keeper):
    """Reads one command a line from standard input and answers each with one line, `ok ...` or `failed ...`; words are
    separated by tabs. At the end of input, which is also how the end of the test process looks from here, everything is
    stopped."""
    print("ok", flush=True)
    try:
        for line in sys.stdin:
            name, *words = line.rstrip("\n").split("\t")
            try:
                answer = getattr(keeper, name)(*words)
                print(f"ok\t{answer}" if answer is not None else "ok", flush=True)
            except Exception as error:
                traceback.print_exc(file=keeper.log)
                print("failed\t" + repr(error).replace("\n", " "), flush=True)
    finally:
        keeper.stop()
