/* bindings/python/src/dtype.c: the names of dtypes, as numpy and TVM spell them, and dtypes of what callers give.
 * int4 and other elements of less than a byte take a byte each in Heddle. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that are a word and a number of bits, and names of their own; DLPack's codes. The first name of a dtype is the
 * one that is given. */
static const struct {
  const char *word;
  uint8_t code;
} kinds[] = {{"int", HEDDLE_DTYPE_INT},       {"uint", HEDDLE_DTYPE_UINT},       {"float", HEDDLE_DTYPE_FLOAT},
             {"bfloat", HEDDLE_DTYPE_BFLOAT}, {"complex", HEDDLE_DTYPE_COMPLEX}, {"handle", HEDDLE_DTYPE_HANDLE}};

static const struct {
  const char *name;
  uint8_t code, bits;
} names[] = {
    {"bool", HEDDLE_DTYPE_BOOL, 8}, {"handle", HEDDLE_DTYPE_HANDLE, 64},
    {"float8_e3m4", 7, 8},          {"float8_e4m3", 8, 8},
    {"float8_e4m3b11fnuz", 9, 8},   {"float8_e4m3fn", 10, 8},
    {"float8_e4m3fnuz", 11, 8},     {"float8_e5m2", 12, 8},
    {"float8_e5m2fnuz", 13, 8},     {"float8_e8m0fnu", 14, 8},
    {"float6_e2m3fn", 15, 6},       {"float6_e3m2fn", 16, 6},
    {"float4_e2m1fn", 17, 4},       {"e4m3_float8", 10, 8},
    {"e5m2_float8", 12, 8}, /* TVM's */
};

PyObject *heddle_py_dtype_name(heddle_dtype dtype) {
  char lanes[16] = "";
  if (dtype.bits == 0) return PyUnicode_FromString("unknown");
  if (dtype.lanes != 1) snprintf(lanes, sizeof lanes, "x%u", (unsigned)dtype.lanes);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].code == dtype.code && names[i].bits == dtype.bits)
      return PyUnicode_FromFormat("%s%s", names[i].name, lanes);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (kinds[i].code == dtype.code) return PyUnicode_FromFormat("%s%u%s", kinds[i].word, (unsigned)dtype.bits, lanes);
  return PyUnicode_FromFormat("dtype(%u,%u,%u)", (unsigned)dtype.code, (unsigned)dtype.bits, (unsigned)dtype.lanes);
}

/* "" or "x4" as a number of lanes; 0 where it is neither. */
static unsigned long lanes_of(const char *text) {
  char *end = NULL;
  if (*text == '\0') return 1;
  if (text[0] != 'x' || text[1] < '1' || text[1] > '9') return 0;
  unsigned long n = strtoul(text + 1, &end, 10);
  return *end == '\0' && n <= UINT16_MAX ? n : 0;
}

int heddle_py_dtype_parse(const char *name, heddle_dtype *out) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t n = strlen(names[i].name);
    unsigned long lanes = strncmp(name, names[i].name, n) == 0 ? lanes_of(name + n) : 0;
    if (lanes == 0) continue;
    *out = (heddle_dtype){names[i].code, names[i].bits, (uint16_t)lanes};
    return 0;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    size_t n = strlen(kinds[i].word);
    char *end = NULL;
    if (strncmp(name, kinds[i].word, n) != 0 || name[n] < '1' || name[n] > '9') continue;
    unsigned long bits = strtoul(name + n, &end, 10), lanes = lanes_of(end);
    if (bits > 128 || lanes == 0) return -1;
    if (kinds[i].code == HEDDLE_DTYPE_UINT && bits == 1) *out = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, (uint16_t)lanes};
    else *out = (heddle_dtype){kinds[i].code, (uint8_t)bits, (uint16_t)lanes};
    return 0;
  }
  return -1;
}

int heddle_py_dtype_of(PyObject *object, heddle_dtype *out) {
  PyObject *text = NULL;
  int found = -1;
  if (PyUnicode_Check(object)) {
    text = Py_NewRef(object);
  } else {
    int s = heddle_py_dtype_of_numpy(object, out);
    if (s <= 0) return s;
    if (PyObject_HasAttrString(object, "dtype") || !PyType_Check(object)) text = PyObject_Str(object);
    else text = PyObject_GetAttrString(object, "__name__"); /* ml_dtypes.bfloat16, float */
    if (text == NULL) return -1;
  }
  PyObject *bytes = PyUnicode_AsUTF8String(text);
  if (bytes != NULL) {
    found = heddle_py_dtype_parse(PyBytes_AsString(bytes), out);
    if (found < 0)
      PyErr_Format(PyExc_TypeError,
                   "%R is no dtype of Heddle's; give one such as 'float32', 'int64', 'bool' or 'bfloat16'", object);
  }
  Py_XDECREF(bytes);
  Py_DECREF(text);
  return found;
}

int heddle_py_dtype_init(PyObject *module) {
  (void)module;
  return 0;
}
