/* conformance/manifest.c: from the file that was named to the shared library that is checked: itself, or what a plugin's
 * manifest (JSON) names. docs/conformance.md has the manifest's members. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

static bool ends_in(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static int wrong(const char *file, const char *what) {
  kit_print(stderr, "heddle check-plugin: %s: %s\n", file, what);
  return CHECK_WRONG_WORDS;
}

static int real_path(const char *path, const char *file, check_options *o) {
  char *found = realpath(path, NULL);
  if (found == NULL) return wrong(file, strerror(errno));
  bool fits = strlen(found) < sizeof o->library;
  if (fits) strcpy(o->library, found);
  free(found);
  return fits ? CHECK_DONE : wrong(file, "its path is too long");
}

/* The library beside the manifest; it may not lie outside the manifest's folder. */
static int read_manifest(json_t *root, check_options *o) {
  const char *library = json_string_value(json_object_get(root, "library"));
  const char *abi = json_string_value(json_object_get(root, "abi"));
  const char *name = json_string_value(json_object_get(root, "name"));
  json_t *priority = json_object_get(root, "priority");
  char path[4096], *end;
  if (name == NULL || name[0] == '\0') return wrong(o->file, "the manifest has no \"name\"");
  if (library == NULL || library[0] == '\0') return wrong(o->file, "the manifest has no \"library\"");
  if (abi == NULL || strtol(abi, &end, 10) != HEDDLE_ABI_MAJOR || *end != '.')
    return wrong(o->file, "the manifest's \"abi\" is not \"1.0\" or a later 1");
  if (priority != NULL && !json_is_integer(priority))
    return wrong(o->file, "the manifest's \"priority\" is no whole number");
  if (library[0] == '/' || strstr(library, "..") != NULL)
    return wrong(o->file, "the manifest's \"library\" is not a path below the manifest's own folder");
  const char *slash = strrchr(o->file, '/');
  int folder = slash != NULL ? (int)(slash - o->file) + 1 : 0;
  int n = snprintf(path, sizeof path, "%.*s%s", folder, o->file, library);
  if (n < 0 || (size_t)n >= sizeof path) return wrong(o->file, "its path is too long");
  return real_path(path, path, o);
}

int check_find_library(check_options *o) {
  json_error_t why;
  if (!ends_in(o->file, ".json")) return real_path(o->file, o->file, o);
  json_t *root = json_load_file(o->file, JSON_REJECT_DUPLICATES, &why);
  if (root == NULL) return wrong(o->file, why.text);
  int status = json_is_object(root) ? read_manifest(root, o) : wrong(o->file, "the manifest is no JSON object");
  json_decref(root);
  return status;
}
