/* Which architectures an installed rocBLAS has kernels for: its folder of them has files that carry an architecture's
 * name. It is looked up beforehand, since rocBLAS ends the process at the first product on a device that it has none for
 * ("rocBLAS error: Cannot read .../TensileLibrary.dat"), which most cards for the desktop are. */
#define _GNU_SOURCE /* dladdr */
#include "rocm.h"

#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>

enum { FOLDER_BYTES = 1024, ARCH_BYTES = 32 };

/* Of everything that matches: how many paths, and the first of them. */
static size_t matches(const char *pattern, char *first, size_t bytes) {
  glob_t found;
  memset(&found, 0, sizeof found);
  const size_t n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
  if (n > 0 && first != NULL) snprintf(first, bytes, "%s", found.gl_pathv[0]);
  globfree(&found);
  return n;
}

/* Where rocBLAS looks: the folder that the setting tensile names, or one beside the library. False: there is none. */
static bool find_folder(const heddle_host *host, const void *function, char *out) {
  static const char *const places[] = {"rocblas/library", "rocblas/*/library", "library", "../rocblas/lib/library"};
  struct stat st;
  Dl_info own;
  char pattern[FOLDER_BYTES];
  const int64_t named = host->config(host->ctx, "tensile", out, FOLDER_BYTES);
  if (named > 0) return named < FOLDER_BYTES && stat(out, &st) == 0 && S_ISDIR(st.st_mode);
  if (dladdr(function, &own) == 0 || own.dli_fname == NULL) return false;
  const char *slash = strrchr(own.dli_fname, '/');
  if (slash == NULL) return false;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const int length =
        snprintf(pattern, sizeof pattern, "%.*s/%s", (int)(slash - own.dli_fname), own.dli_fname, places[i]);
    if (length < (int)sizeof pattern && matches(pattern, out, FOLDER_BYTES) > 0 && stat(out, &st) == 0 &&
        S_ISDIR(st.st_mode))
      return true;
  }
  return false;
}

bool rocm_tensile_has(const heddle_host *host, const void *function, const char *features, char *why, size_t bytes) {
  char folder[FOLDER_BYTES], pattern[FOLDER_BYTES + ARCH_BYTES + 16], arch[ARCH_BYTES];
  snprintf(arch, sizeof arch, "%.*s", (int)strcspn(features, ":"), features);
  if (!find_folder(host, function, folder)) return true;           /* laid out in some other way: rocBLAS knows */
  snprintf(pattern, sizeof pattern, "%s/*%s[._-]*", folder, arch); /* gfx90 is not in gfx90a */
  if (matches(pattern, NULL, 0) > 0) return true;
  snprintf(pattern, sizeof pattern, "%s/%s", folder, arch); /* newer ones have a folder for each */
  if (matches(pattern, NULL, 0) > 0) return true;
  snprintf(why, bytes, "it has no kernels for %s in %s", arch, folder);
  return false;
}
