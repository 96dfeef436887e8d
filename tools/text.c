/* tools/text.c: numbers, shapes and failures as the tool prints them. */
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

static void vprint(FILE *out, const char *format, va_list args) {
  char few[1024];
  const int n = heddle_text_format(few, sizeof few, format, args);
  char *all = n >= (int)sizeof few ? malloc((size_t)n + 1) : NULL;
  if (all != NULL) (void)heddle_text_format(all, (size_t)n + 1, format, args);
  fputs(all != NULL ? all : few, out); /* cut where memory is out */
  free(all);
}

void print(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprint(stdout, format, args);
  va_end(args);
}

void print_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprint(stderr, format, args);
  va_end(args);
}

void print_to(FILE *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprint(out, format, args);
  va_end(args);
}

void put_text(const char *text, size_t bytes) {
  fwrite(text, 1, bytes, stdout);
}

static heddle_context *told; /* failures are sent to its ranks */

void fail_tells(heddle_context *ctx) {
  told = ctx;
}

/* names_rank: the text says whose failure it is; else it is this rank's. */
static int fail_with(const char *command, heddle_status status, const char *text, bool names_rank) {
  uint32_t rank = 0, size = 1;
  char whose[32] = "";
  if (told != NULL) heddle_context_rank(told, &rank, &size);
  if (size > 1 && !names_rank) snprintf(whose, sizeof whose, "rank %" PRIu32 ": ", rank);
  progress_end();
  fflush(stdout); /* what was found before stands before it */
  print_error("heddle %s: %s%s\n", command, whose, text);
  if (told != NULL) heddle_context_fail_ranks(told, status, text);
  return FAILED;
}

int fail(const char *command, const heddle_error *err) {
  heddle_failure where = {.struct_size = sizeof where};
  const bool names_rank = heddle_error_failure(err, &where) == HEDDLE_OK && where.rank >= 0;
  return fail_with(command, err->status, err->text[0] != '\0' ? err->text : heddle_status_text(err->status),
                   names_rank);
}

int fail_text(const char *command, const char *format, ...) {
  char few[1024];
  va_list args;
  va_start(args, format);
  const int n = heddle_text_format(few, sizeof few, format, args);
  va_end(args);
  char *all = n >= (int)sizeof few ? malloc((size_t)n + 1) : NULL;
  va_start(args, format);
  if (all != NULL) (void)heddle_text_format(all, (size_t)n + 1, format, args);
  va_end(args);
  const int status = fail_with(command, HEDDLE_EFAILED, all != NULL ? all : few, false); /* cut where memory is out */
  free(all);
  return status;
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
  if (shown < n) print("  ... and %" PRIu32 " more; --all prints them\n", n - shown);
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

/* JSON in ASCII, but for U+007F, which jansson leaves as it is. */
static int put_json(const char *text, size_t bytes, void *user) {
  (void)user;
  for (size_t i = 0; i < bytes; i++) {
    if (text[i] == 0x7F) fputs("\\u007f", stdout);
    else putchar(text[i]);
  }
  return 0;
}

int print_json(const char *command, json_t *object) {
  if (object == NULL) return fail_text(command, "out of memory");
  const bool good = json_dump_callback(object, put_json, NULL, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0;
  print("\n");
  json_decref(object);
  return good ? DONE : fail_text(command, "out of memory");
}

void progress(const char *format, ...) {
  if (!isatty(STDERR_FILENO)) return;
  va_list args;
  fputs("\r\033[K", stderr);
  va_start(args, format);
  vprint(stderr, format, args);
  va_end(args);
  fflush(stderr);
}

void progress_end(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}
