# SPDX-License-Identifier: Apache-2.0
"""The comparison of the C interface with the last release's lets additions pass, and nothing else."""

import shutil

import abi
import pytest

pytestmark = pytest.mark.skipif(shutil.which("abidiff") is None, reason="abidiff is missing: ./dev abi installs it")

HEADER = """
#include <stddef.h>
#define HONE_API
#define HONE_NULLABLE
typedef enum hone_kind { HONE_ONE = 0, HONE_TWO } hone_kind;
typedef struct hone_thing hone_thing;
typedef struct hone_info { size_t size; double time; int count; } hone_info;
typedef void (*hone_fn)(void* user, double time);
HONE_API int hone_thing_create(const char* name, hone_kind kind, hone_thing** thing);
HONE_API int hone_thing_describe(const hone_thing* thing, hone_info* info);
HONE_API int hone_thing_call(hone_thing* thing, hone_fn HONE_NULLABLE function, void* user);
HONE_API void hone_thing_destroy(hone_thing* HONE_NULLABLE thing);
"""


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("abi")
    (folder / "hone.h").write_text(HEADER)
    abi.dump(folder / "hone.h", folder / "hone.abi")
    return folder / "hone.abi"


def judged(folder, baseline, old, new):
    assert HEADER.count(old) == 1
    (folder / "hone.h").write_text(HEADER.replace(old, new))
    return abi.compare(folder / "hone.h", baseline)


@pytest.mark.parametrize("old, new", [
    ("#define HONE_NULLABLE\n", "#define HONE_NULLABLE\n#define HONE_MORE 1\n"),
    ("HONE_API void", "HONE_API int hone_more(int x);\nHONE_API void"),
    ("HONE_TWO", "HONE_TWO, HONE_THREE"),
    ("int count;", "int count; double more;"),
])
def test_additions_pass(folder, baseline, old, new):
    assert judged(folder, baseline, old, new) is None


@pytest.mark.parametrize("old, new, said", [
    ("HONE_ONE = 0", "HONE_ZERO = 0, HONE_ONE", "HONE_ONE"),
    ("int count;", "int more; int count;", "count"),
    ("int count;", "int count; int more;", "more of hone_info lies where"),
    ("int count;", "long long count;", "hone_info"),
    ("int count;", "", "count"),
    ("double time; int", "float time; int", "time"),
    ("void* user, double time", "void* user, float time", "hone_fn"),
    ("const char* name", "const char* name, int more", "hone_thing_create"),
    ("HONE_API void hone_thing_destroy(hone_thing* HONE_NULLABLE thing);", "", "hone_thing_destroy"),
    ("HONE_API int hone_thing_call", "HONE_API double hone_thing_call", "hone_thing_call"),
])
def test_changes_and_removals_fail(folder, baseline, old, new, said):
    assert said in judged(folder, baseline, old, new)
