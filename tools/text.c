/* tools/text.c: numbers, shapes and failures as the tool prints them. */
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

int fail(const char *command, const heddle_error *err) {
  return fail_text(command, "%s", err->text[0] != '\0' ? err->text : heddle_status_text(err->status));
}

int fail_text(const char *command, const char *format, ...) {
  va_list args;
  progress_end();
  fflush(stdout); /* what was found before stands before it */
  fprintf(stderr, "heddle %s: ", command);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n");
  return FAILED;
}

void dtype_text(heddle_dtype dtype, char out[32]) {
  const char *kind = "?";
  switch (dtype.code) {
  case HEDDLE_DTYPE_INT: kind = "int"; break;
  case HEDDLE_DTYPE_UINT: kind = "uint"; break;
  case HEDDLE_DTYPE_FLOAT: kind = "float"; break;
  case HEDDLE_DTYPE_BFLOAT: kind = "bfloat"; break;
  case HEDDLE_DTYPE_BOOL: kind = "bool"; break;
  default: break;
  }
  char lanes[16] = "";
  if (dtype.lanes > 1) snprintf(lanes, sizeof lanes, "x%u", (unsigned)dtype.lanes);
  if (dtype.bits == 0 || kind[0] == '?') snprintf(out, 32, "?");
  else if (dtype.code == HEDDLE_DTYPE_BOOL) snprintf(out, 32, "bool%s", lanes);
  else snprintf(out, 32, "%s%u%s", kind, (unsigned)dtype.bits, lanes);
}

void shape_text(const int64_t *shape, uint32_t ndim, const char *const *symbols, char *out, size_t size) {
  if (ndim == UINT32_MAX) {
    snprintf(out, size, "?");
    return;
  }
  size_t used = (size_t)snprintf(out, size, "[");
  for (uint32_t i = 0; i < ndim; i++) {
    char dim[24];
    if (shape[i] >= 0) snprintf(dim, sizeof dim, "%" PRId64, shape[i]);
    else snprintf(dim, sizeof dim, "%.20s", symbols != NULL && symbols[i] != NULL ? symbols[i] : "?");
    bool fits = used + strlen(dim) + 8 < size;
    used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", fits ? dim : "...");
    if (!fits) break;
  }
  snprintf(out + used, size - used, "]");
}

void bytes_text(uint64_t bytes, char out[32]) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double n = (double)bytes;
  int unit = 0;
  for (; n >= 1024 && unit < 6; unit++) n /= 1024;
  snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

#define MAX_ROWS 60  /* that are all printed */
#define KEPT_ROWS 20 /* of more */

uint32_t rows_shown(uint32_t n, bool all) {
  return all || n <= MAX_ROWS ? n : KEPT_ROWS;
}

void rows_left_out(uint32_t n, bool all) {
  uint32_t shown = rows_shown(n, all);
  if (shown < n) printf("  ... and %" PRIu32 " more; --all prints them\n", n - shown);
}

json_t *json_words(const char *text) {
  json_t *made = json_string(text);
  if (made != NULL) return made;
  size_t n = strlen(text);
  char *ascii = malloc(n + 1);
  if (ascii == NULL) return NULL;
  for (size_t i = 0; i <= n; i++) ascii[i] = (unsigned char)text[i] < 128 ? text[i] : '?';
  made = json_string(ascii);
  free(ascii);
  return made;
}

json_t *json_shape(const int64_t *shape, uint32_t ndim, const char *const *symbols) {
  if (ndim == UINT32_MAX) return json_null();
  json_t *list = json_array();
  for (uint32_t i = 0; i < ndim; i++) {
    json_t *dim = shape[i] >= 0                           ? json_integer(shape[i])
                  : symbols != NULL && symbols[i] != NULL ? json_words(symbols[i])
                                                          : json_null();
    json_array_append_new(list, dim);
  }
  return list;
}

int print_json(const char *command, json_t *object) {
  if (object == NULL) return fail_text(command, "out of memory");
  json_dumpf(object, stdout, JSON_INDENT(2));
  printf("\n");
  json_decref(object);
  return DONE;
}

void progress(const char *format, ...) {
  if (!isatty(STDERR_FILENO)) return;
  va_list args;
  fprintf(stderr, "\r\033[K");
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fflush(stderr);
}

void progress_end(void) {
  if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
}
