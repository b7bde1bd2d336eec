/* SPDX-License-Identifier: Apache-2.0
 *
 * hone and trtexec as pip puts them into an environment's bin folder: starts the program in the Python package, which knows by
 * its name which of the two it is. Not a script of Python's: that would take longer to start than most commands to run.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the package may lie, as seen from this program's folder. */
static const char* const kPlaces[] = {
    "%s/../lib/python3*/site-packages/hone/bin/hone", /* an environment, a user's own packages */
    "%s/../lib64/python3*/site-packages/hone/bin/hone",
    "%s/../lib/python3*/dist-packages/hone/bin/hone", /* Debian's /usr/local */
    "%s/../hone/bin/hone",                            /* pip install --target */
};

int main(int argc, char** argv) {
  char self[PATH_MAX], pattern[PATH_MAX + 64];
  (void)argc;
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) {
    fputs("hone: /proc is missing\n", stderr);
    return 1;
  }
  self[length] = '\0';
  *strrchr(self, '/') = '\0';
  /* What the program would start itself anew for (src/tools/main.cpp): said here, it is loaded once. */
  if (getenv("OMP_WAIT_POLICY") == NULL) setenv("GOMP_SPINCOUNT", "1000", 0);
  for (size_t i = 0; i < sizeof kPlaces / sizeof kPlaces[0]; ++i) {
    glob_t found;
    snprintf(pattern, sizeof pattern, kPlaces[i], self);
    if (glob(pattern, 0, NULL, &found) == 0)
      for (size_t at = 0; at < found.gl_pathc; ++at) execv(found.gl_pathv[at], argv);
    globfree(&found);
  }
  fprintf(stderr, "hone: the Python package hone is not beside %s; install it anew: pip install hone\n", self);
  return 1;
}
