"""The version of this program, apart from the API so that what the API calls can name it."""

from typing import Final

VERSION: Final = "0.1.0"
