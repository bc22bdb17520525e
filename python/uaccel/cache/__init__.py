"""What was made once and is kept: by content of all that it was made of, in the user's cache folder."""

from uaccel.cache.key import Key, file_digest, folder_digest, own_sources, programs_digest
from uaccel.cache.store import Cache, Entry, Kept, cache_folder, cache_of_objects, cache_of_user

__all__ = [
    "Cache",
    "Entry",
    "Kept",
    "Key",
    "cache_folder",
    "cache_of_objects",
    "cache_of_user",
    "file_digest",
    "folder_digest",
    "own_sources",
    "programs_digest",
]
