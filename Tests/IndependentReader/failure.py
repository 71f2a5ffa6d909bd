"""Why a vault was refused: the library's code names and vaultctl's exit statuses."""

STATUSES = {
    "locked": 4,
    "wrongPassphrase": 5,
    "notPermitted": 5,
    "wrongDevice": 6,
    "corrupt": 7,
    "rolledBack": 7,
    "forked": 7,
    "unavailable": 8,
    "notAVault": 8,
    "unsupportedFormat": 8,
    "invalidArgument": 64,
}


class Failure(Exception):
    """A code of the library's, and where the reader stood. Never a key or a secret."""

    def __init__(self, code, where):
        super().__init__(where)
        self.code = code
        self.where = where


def corrupt(where):
    return Failure("corrupt", where)
