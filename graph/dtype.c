/* graph/dtype.c: dtype strings of graph JSON, and which dtypes a graph may have.
 * The grammar is TVM's: a base word, its bits, and 'x' with lanes; bool is (6, 8, 1) here and uint1 there. */
#include <string.h>

#include "core/error.h"
#include "core/tensor.h"
#include "graph/opschema.h"
#include "graph/words.h"

static const struct base {
  const char *word;
  uint8_t code;
  uint8_t bits; /* where none are given */
} bases[] = {
    {"int", HEDDLE_DTYPE_INT, 32},
    {"uint", HEDDLE_DTYPE_UINT, 32},
    {"float", HEDDLE_DTYPE_FLOAT, 32},
    {"handle", HEDDLE_DTYPE_HANDLE, 64},
    {"bfloat", HEDDLE_DTYPE_BFLOAT, 16},
    {"e4m3_float", 10, 8},
    {"e4m3fnuz_float", 11, 8},
    {"e5m2_float", 12, 8},
    {"e5m2fnuz_float", 13, 8},
    {"e8m0_float", 14, 8},
    {"e2m1_float", 17, 4},
};

/* Decimal digits at *text, at most max; false for none, for a leading 0 or for more. */
static bool number(const char **text, uint32_t max, uint32_t *out) {
  const char *c = *text;
  uint32_t n = 0;
  if (*c < '1' || *c > '9') return false;
  for (; *c >= '0' && *c <= '9'; c++) {
    n = n * 10 + (uint32_t)(*c - '0');
    if (n > max) return false;
  }
  *text = c;
  *out = n;
  return true;
}

static bool parse(const char *text, heddle_dtype *out) {
  uint32_t bits = 0, lanes = 1;
  if (strcmp(text, "bool") == 0) {
    *out = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1};
    return true;
  }
  for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
    size_t n = strlen(bases[i].word);
    if (strncmp(text, bases[i].word, n) != 0) continue;
    const char *c = text + n;
    bits = bases[i].bits;
    if (*c >= '0' && *c <= '9' && !number(&c, 255, &bits)) return false;
    if (*c == 'x') {
      c++;
      if (!number(&c, UINT16_MAX, &lanes)) return false;
    }
    if (*c != '\0') return false;
    *out = (heddle_dtype){bases[i].code, (uint8_t)bits, (uint16_t)lanes};
    if (out->code == HEDDLE_DTYPE_UINT && bits == 1) *out = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, (uint16_t)lanes};
    return true;
  }
  return false;
}

heddle_status heddle__dtype_parse(const char *text, heddle_dtype *out, heddle_error *err) {
  char shown[64];
  if (parse(text, out)) return HEDDLE_OK;
  heddle__show(text, shown);
  if (strncmp(text, "custom[", 7) == 0)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "dtype '%s': custom types of a TVM build are not known here", shown);
  if (strstr(text, "xvscalex") != NULL)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "dtype '%s': scalable vectors have no fixed size", shown);
  return heddle__fail(err, HEDDLE_EFORMAT, "dtype '%s': expected one such as float32, int64, uint8, bool or bfloat16",
                      shown);
}

/* Of 4 and 2 bits, each in a byte of its own. */
static bool is_narrow(heddle_dtype d) {
  const bool is_whole = d.code == HEDDLE_DTYPE_INT || d.code == HEDDLE_DTYPE_UINT;
  return d.lanes == 1 && ((is_whole && (d.bits == 4 || d.bits == 2)) || (d.code == 17 && d.bits == 4));
}

heddle_status heddle__dtype_usable(heddle_dtype dtype, bool takes_narrow, heddle_error *err) {
  char name[32];
  bool whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64, good;
  heddle__dtype_name(dtype, name);
  if (takes_narrow && is_narrow(dtype)) return HEDDLE_OK;
  if (dtype.bits < 8)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "%s: no operator takes types of less than 8 bits (but bool); use int8 "
                        "or uint8",
                        name);
  switch (dtype.code) {
  case HEDDLE_DTYPE_INT:
  case HEDDLE_DTYPE_UINT: good = whole; break;
  case HEDDLE_DTYPE_FLOAT: good = whole && dtype.bits >= 16; break;
  case HEDDLE_DTYPE_BFLOAT: good = dtype.bits == 16; break;
  case HEDDLE_DTYPE_HANDLE: good = false; break;
  default: good = dtype.bits == 8; break; /* bool, float8 */
  }
  if (!good)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "%s is no type for the values of a graph; expected one such as "
                        "float32, int64, uint8, bool or bfloat16",
                        name);
  return HEDDLE_OK;
}

heddle_status heddle__tensor_bytes(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, uint64_t *out,
                                   heddle_error *err) {
  return heddle__shape_bytes(dtype, ndim, shape, NULL, out, err);
}
