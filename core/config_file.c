/* core/config_file.c: reads the configuration file (JSON) into dotted keys.
 * Malformed text names file, line and column; a value of a wrong kind names file and key. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config_file.h"
#include "core/error.h"

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 8, MAX_KEY = 200, MAX_VALUE = 8192 };

typedef struct reader {
  const char *path;
  heddle__entries *out;
  heddle_error *err;
  char key[MAX_KEY];
  char value[MAX_VALUE];
} reader;

/* Appends the text of a scalar to value[*n]; numbers as they stand in the file, whatever the locale. */
static heddle_status scalar(reader *r, const json_t *json, size_t *n) {
  char *dumped = NULL;
  const char *text = NULL;
  if (json_is_string(json)) {
    text = json_string_value(json);
    if (strlen(text) != json_string_length(json))
      return heddle__fail(r->err, HEDDLE_EFORMAT, "%s: key '%s': the string holds a zero byte", r->path, r->key);
  } else if (json_is_boolean(json)) text = json_is_true(json) ? "1" : "0";
  else if (json_is_number(json)) {
    text = dumped = json_dumps(json, JSON_ENCODE_ANY);
    if (text == NULL) return heddle__no_memory(r->err, "the configuration file");
  } else
    return heddle__fail(r->err, HEDDLE_EFORMAT, "%s: key '%s': expected a string, a number, true or false in the list",
                        r->path, r->key);
  size_t length = strlen(text);
  if (length >= MAX_VALUE - *n) {
    free(dumped);
    return heddle__fail(r->err, HEDDLE_ELIMIT, "%s: key '%s': the value is over %d bytes", r->path, r->key, MAX_VALUE);
  }
  memcpy(r->value + *n, text, length + 1);
  *n += length;
  free(dumped);
  return HEDDLE_OK;
}

static heddle_status list(reader *r, const json_t *json, size_t *n) {
  bool paths =
      strcmp(r->key, "plugins") == 0 || strcmp(r->key, "plugin_path") == 0 || strcmp(r->key, "privileged.plugins") == 0;
  for (size_t i = 0; i < json_array_size(json); i++) {
    if (i > 0 && *n < MAX_VALUE - 1) {
      r->value[(*n)++] = paths ? ':' : ',';
      r->value[*n] = '\0';
    }
    heddle_status s = scalar(r, json_array_get(json, i), n);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* Walks an object whose dotted key, with its dot, is key[0..length). */
static heddle_status object(reader *r, json_t *json, size_t length, int depth) {
  const char *name;
  json_t *member;
  if (depth > MAX_DEPTH)
    return heddle__fail(r->err, HEDDLE_ELIMIT, "%s: objects nest deeper than %d", r->path, MAX_DEPTH);
  json_object_foreach(json, name, member) {
    size_t n = strlen(name), used = 0;
    if (n == 0 || n + 2 > MAX_KEY - length)
      return heddle__fail(r->err, HEDDLE_EFORMAT, "%s: a key under '%.*s' is empty or too long", r->path, (int)length,
                          r->key);
    memcpy(r->key + length, name, n + 1);
    heddle_status s = HEDDLE_OK;
    r->value[0] = '\0';
    if (json_is_object(member)) {
      r->key[length + n] = '.';
      r->key[length + n + 1] = '\0';
      s = object(r, member, length + n + 1, depth + 1);
    } else if (!json_is_null(member)) {
      s = json_is_array(member) ? list(r, member, &used) : scalar(r, member, &used);
      if (s == HEDDLE_OK) s = heddle__entries_add(r->out, r->key, length + n, r->value, r->err);
    }
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

heddle_status heddle__config_file_read(const char *path, bool must_exist, heddle__entries *out, heddle_error *err) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    int code = errno;
    bool absent = code == ENOENT || code == ENOTDIR || code == EACCES;
    if (absent && !must_exist) return HEDDLE_ENOTFOUND;
    return heddle__fail(err, HEDDLE_EIO, "configuration file '%s' could not be opened (errno %d, %s)", path, code,
                        code == ENOENT ? "there is none" : "check its permissions");
  }
  char *text = heddle__alloc(MAX_BYTES + 1, 1);
  reader *r = heddle__alloc(1, sizeof *r);
  heddle_status s = HEDDLE_OK;
  if (text == NULL || r == NULL) {
    s = heddle__no_memory(err, "the configuration file");
  } else {
    size_t bytes = fread(text, 1, MAX_BYTES + 1, file);
    json_error_t problem;
    if (ferror(file)) s = heddle__fail(err, HEDDLE_EIO, "configuration file '%s' could not be read", path);
    else if (bytes > MAX_BYTES)
      s = heddle__fail(err, HEDDLE_ELIMIT, "configuration file '%s' is over %d bytes", path, MAX_BYTES);
    else {
      json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
      *r = (reader){.path = path, .out = out, .err = err};
      if (root == NULL)
        s = heddle__fail(err, HEDDLE_EFORMAT, "%s:%d:%d: %s", path, problem.line, problem.column, problem.text);
      else if (!json_is_object(root))
        s = heddle__fail(err, HEDDLE_EFORMAT, "%s:1: expected an object { ... } of settings", path);
      else s = object(r, root, 0, 1);
      json_decref(root);
    }
  }
  heddle__free(r);
  heddle__free(text);
  fclose(file);
  return s;
}
