/* graph/json_parse.c: text to JSON values, with what jansson does not do itself: a limit of nesting before anything
 * recurses, and TVM's rule that the document may end at the key "metadata". */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/json_out.h"
#include "graph/reader.h"
#include "graph/words.h"

/* What one look over the text finds. */
typedef struct scan {
  size_t metadata; /* where the quote of the top-level key "metadata" stands, or SIZE_MAX */
  size_t too_deep; /* where the nesting went over the limit, or SIZE_MAX */
} scan;

/* Follows strings and brackets only; whether the rest is JSON is for the parser to say. */
static scan look_over(const char *text, size_t bytes, uint32_t max_depth) {
  static const char key[] = "\"metadata\"";
  scan found = {SIZE_MAX, SIZE_MAX};
  uint32_t depth = 0;
  bool key_next = false; /* after '{' or ',' of the top-level object */
  for (size_t i = 0; i < bytes; i++) {
    char c = text[i];
    if (c == '"') {
      bool matches = bytes - i > sizeof key - 1 && memcmp(text + i, key, sizeof key - 1) == 0;
      if (matches && key_next && depth == 1 && found.metadata == SIZE_MAX) found.metadata = i;
      for (i++; i < bytes && text[i] != '"'; i++)
        if (text[i] == '\\') i++;
      key_next = false;
    } else if (c == '{' || c == '[') {
      if (++depth > max_depth) {
        found.too_deep = i;
        break;
      }
      key_next = c == '{' && depth == 1;
    } else if (c == '}' || c == ']') {
      if (depth > 0) depth--;
    } else if (c == ',') {
      key_next = depth == 1;
    }
  }
  return found;
}

static void place_of(const char *text, size_t at, unsigned *line, size_t *column) {
  *line = 1;
  *column = 1;
  for (size_t i = 0; i < at; i++) {
    *column = text[i] == '\n' ? 1 : *column + 1;
    *line += text[i] == '\n';
  }
}

static heddle_status complain(const json_error_t *e, const char *name, heddle_error *err) {
  char words[64];
  enum json_error_code code = json_error_code(e);
  if (code == json_error_out_of_memory) return heddle__no_memory(err, "the JSON of a graph");
  heddle__show(e->text, words);
  if (code == json_error_end_of_input_expected)
    return heddle__fail(err, HEDDLE_EFORMAT, "%s:%d:%d: text after the end of the graph's object", name, e->line,
                        e->column);
  if (code == json_error_numeric_overflow)
    return heddle__fail(err, HEDDLE_EFORMAT, "%s:%d:%d: a number that does not fit 64 bits (%s)", name, e->line,
                        e->column, words);
  return heddle__fail(err, HEDDLE_EFORMAT, "%s:%d:%d: not JSON as it should be: %s", name, e->line, e->column, words);
}

/* The document up to the key "metadata", closed. */
static json_t *parse_head(const char *text, size_t bytes, json_error_t *e) {
  while (bytes > 0 && strchr(" \t\r\n,", text[bytes - 1]) != NULL) bytes--;
  char *head = heddle__alloc(bytes + 1, 1);
  if (head == NULL) return NULL;
  memcpy(head, text, bytes);
  head[bytes] = '}';
  json_t *root = json_loadb(head, bytes + 1, JSON_REJECT_DUPLICATES, e);
  heddle__free(head);
  return root;
}

/* Whether text begins with something else than an object or an array; an empty one does not, nor one with a mark of UTF-8. */
static bool is_other(const char *text, size_t bytes) {
  size_t i = 0;
  while (i < bytes && (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))) i++;
  return i < bytes && text[i] != '{' && text[i] != '[' && text[i] != '\xef';
}

static bool is_syntax(const json_error_t *e) {
  enum json_error_code code = json_error_code(e);
  return code == json_error_invalid_syntax || code == json_error_premature_end_of_input ||
         code == json_error_end_of_input_expected || code == json_error_invalid_utf8;
}

heddle_status heddle__json_parse(const char *text, size_t bytes, const char *name, uint32_t max_depth, json_t **out,
                                 heddle_error *err) {
  scan found = look_over(text, bytes, max_depth);
  json_error_t e;
  *out = NULL;
  if (found.too_deep != SIZE_MAX) {
    unsigned line;
    size_t column;
    place_of(text, found.too_deep, &line, &column);
    return heddle__fail(err, HEDDLE_ELIMIT, "%s:%u:%zu: nested deeper than %u; the limit is an option of the reader",
                        name, line, column, max_depth);
  }
  json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
  if (root == NULL && is_syntax(&e) && found.metadata != SIZE_MAX) {
    json_error_t second = e;
    second.text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; /* where parse_head itself gets none */
    root = parse_head(text, found.metadata, &second);
    if (root == NULL) e = second;
  }
  if (root == NULL && is_other(text, bytes))
    return heddle__fail(
        err, HEDDLE_EFORMAT,
        "%s: it is no model: neither graph JSON nor a package, nor a library or a file that ends in .onnx", name);
  if (root == NULL) return complain(&e, name, err);
  *out = root;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- words and numbers */

heddle_status heddle__reader_fail(heddle__reader *r, heddle_status status, const char *format, ...) {
  char words[800];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  return heddle__fail(r->err, status, "%s: %s", r->name, words);
}

const char *heddle__json_words(const json_t *value, char out[64]) {
  char shown[64];
  if (value == NULL) return strcpy(out, "nothing");
  switch (json_typeof(value)) {
  case JSON_OBJECT: return strcpy(out, "an object");
  case JSON_ARRAY: snprintf(out, 64, "an array of %zu", json_array_size(value)); return out;
  case JSON_STRING:
    heddle__show(json_string_value(value), shown);
    snprintf(out, 64, "the string '%.40s'", shown);
    return out;
  case JSON_INTEGER: snprintf(out, 64, "the number %lld", (long long)json_integer_value(value)); return out;
  case JSON_REAL: {
    heddle__sheet text = {.used = 0}; /* printf would write it in the locale's way */
    heddle__out_float(&text, json_real_value(value));
    snprintf(out, 64, "the real number%s%.40s", text.failed ? "" : " ", text.failed ? "" : text.text);
    heddle__free(text.text);
    return out;
  }
  case JSON_TRUE: return strcpy(out, "true");
  case JSON_FALSE: return strcpy(out, "false");
  default: return strcpy(out, "null");
  }
}

bool heddle__json_int(const json_t *value, int64_t min, int64_t max, int64_t *out) {
  if (!json_is_integer(value)) return false;
  int64_t n = json_integer_value(value);
  if (n < min || n > max) return false;
  *out = n;
  return true;
}
