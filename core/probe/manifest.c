/* core/probe/manifest.c: reads a manifest and finds the library that it means, which lies in its folder or below. */
#define _GNU_SOURCE /* realpath */
#include "core/probe/manifest.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/probe/file.h"

enum { MOST_BYTES = 1 << 16, MOST_PRIORITY = 1000000 };

static bool is_name(const char *name, size_t room) {
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return name[0] >= 'a' && name[0] <= 'z' && name[n] == '\0' && n < room;
}

/* "1.0" */
static bool read_version(const char *text, unsigned *major, unsigned *minor) {
  unsigned *const to[2] = {major, minor};
  for (int i = 0; i < 2; i++) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 5) return false;
    *to[i] = (unsigned)strtoul(text, NULL, 10);
    text += n;
    if (*text != (i == 0 ? '.' : '\0')) return false;
    text += i == 0;
  }
  return true;
}

/* Relative, with no part that is empty, "." or "..". */
static bool is_inside(const char *path) {
  for (const char *p = path;; p++) {
    size_t n = strcspn(p, "/");
    if (n == 0 || (n <= 2 && strncmp(p, "..", n) == 0)) return false;
    p += n;
    if (*p == '\0') return true;
  }
}

/* The member as text; NULL, with why, where it is no string of fewer than room bytes. */
static const char *word(const json_t *root, const char *key, size_t room, heddle_error *err) {
  const json_t *member = json_object_get(root, key);
  const char *text = json_string_value(member);
  if (text == NULL) heddle__fail(err, HEDDLE_EFORMAT, "'%s' is missing or no string", key);
  else if (strlen(text) != json_string_length(member) || strlen(text) >= room) {
    heddle__fail(err, HEDDLE_EFORMAT, "'%s' is longer than %zu bytes or holds a zero", key, room - 1);
    text = NULL;
  }
  return text;
}

static heddle_status read_members(const json_t *root, heddle__manifest *out, heddle_error *err) {
  const json_t *format = json_object_get(root, "format"), *priority = json_object_get(root, "priority");
  unsigned major, minor;
  if (!json_is_integer(format) || json_integer_value(format) != 1)
    return heddle__fail(err, HEDDLE_EFORMAT, "'format' must be 1");
  const char *text = word(root, "name", sizeof out->name, err);
  if (text == NULL) return HEDDLE_EFORMAT;
  if (!is_name(text, sizeof out->name))
    return heddle__fail(err, HEDDLE_EFORMAT, "'name' is '%s', no lower-case word of letters, digits and '_'", text);
  memcpy(out->name, text, strlen(text) + 1);
  text = word(root, "abi", 16, err);
  if (text == NULL) return HEDDLE_EFORMAT;
  if (!read_version(text, &major, &minor))
    return heddle__fail(err, HEDDLE_EFORMAT, "'abi' is '%s', no version such as \"1.0\"", text);
  if (major != HEDDLE_ABI_MAJOR)
    return heddle__fail(
        err, HEDDLE_EABI,
        "it says that the plugin is written for ABI %u.%u, this host has %d.%d; the first number must be "
        "the same",
        major, minor, HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  text = word(root, "library", sizeof out->library, err);
  if (text == NULL) return HEDDLE_EFORMAT;
  if (!is_inside(text))
    return heddle__fail(err, HEDDLE_EFORMAT,
                        "'library' is '%s'; it must be a path below the manifest's folder, without '.' and '..'", text);
  memcpy(out->library, text, strlen(text) + 1);
  if (priority == NULL) return HEDDLE_OK;
  json_int_t n = json_integer_value(priority);
  if (!json_is_integer(priority) || n < -MOST_PRIORITY || n > MOST_PRIORITY)
    return heddle__fail(err, HEDDLE_EFORMAT, "'priority' is no whole number from %d to %d", -MOST_PRIORITY,
                        MOST_PRIORITY);
  out->priority = (int32_t)n;
  return HEDDLE_OK;
}

heddle_status heddle__manifest_parse(const char *text, size_t bytes, heddle__manifest *out, heddle_error *err) {
  json_error_t problem;
  memset(out, 0, sizeof *out);
  json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
  heddle_status s;
  if (root == NULL)
    s = heddle__fail(err, HEDDLE_EFORMAT, "line %d, column %d: %s", problem.line, problem.column, problem.text);
  else if (!json_is_object(root)) s = heddle__fail(err, HEDDLE_EFORMAT, "expected an object { ... }");
  else s = read_members(root, out, err);
  json_decref(root);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "manifest: ");
}

/* The library's real path, which must be below the manifest's real folder whatever links there are. */
static heddle_status find_library(const char *path, const heddle__manifest *m, char **real, heddle_error *err) {
  char *own = realpath(path, NULL), *slash = own != NULL ? strrchr(own, '/') : NULL, full[PATH_MAX];
  heddle_status s = HEDDLE_OK;
  if (slash == NULL) s = heddle__fail(err, HEDDLE_EIO, "manifest: it has no real path (errno %d)", errno);
  else {
    slash[1] = '\0';
    int n = snprintf(full, sizeof full, "%s%s", own, m->library);
    if (n < 0 || (size_t)n >= sizeof full)
      s = heddle__fail(err, HEDDLE_ELIMIT, "manifest: the library's path is too long");
    else if ((*real = realpath(full, NULL)) == NULL)
      s = heddle__fail(err, HEDDLE_EIO, "manifest: there is no library '%s' (errno %d)", m->library, errno);
    else if (strncmp(*real, own, strlen(own)) != 0) {
      s = heddle__fail(err, HEDDLE_EFORMAT, "manifest: 'library' leads out of its folder, to %s", *real);
      free(*real);
      *real = NULL;
    }
  }
  free(own);
  return s;
}

heddle_status heddle__manifest_read(const char *path, heddle__manifest *out, char **real, heddle_error *err) {
  char *text = NULL;
  size_t bytes = 0;
  heddle_status s = heddle__probe_file_read(path, false, MOST_BYTES, &text, &bytes, err);
  if (s == HEDDLE_OK) s = heddle__manifest_parse(text, bytes, out, err);
  else heddle__prefix(err, s, "manifest: ");
  free(text);
  return s == HEDDLE_OK ? find_library(path, out, real, err) : s;
}
