/* modules/tvm/api_object.c: TVM's C API, objects: modules, arrays and functions by one handle, with TVM's numbers of
 * their types. Arrays are known by their address, the others by the mark that they begin with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/api.h"
#include "modules/tvm/json.h"

enum { ROOT, MODULE, ARRAY, FUNCTION = 7 };

static const struct {
  unsigned index;
  const char *key;
} types[] = {
    {ROOT, "runtime.Object"}, {MODULE, "runtime.Module"}, {ARRAY, "runtime.NDArray"}, {FUNCTION, "runtime.PackedFunc"}};

enum { TYPES = sizeof types / sizeof types[0] };

/* The type of what a handle is; ROOT with words: it is none of ours. Of an array *array is it, with a reference. */
static unsigned kind_of(const char *caller, void *handle, heddle__array **array) {
  uint64_t mark = 0;
  *array = handle != NULL ? heddle__array_find(handle) : NULL;
  if (*array != NULL) return ARRAY;
  if (handle != NULL) memcpy(&mark, handle, sizeof mark);
  if (mark == HEDDLE__OBJECT_MARK) return MODULE;
  if (mark == HEDDLE__FUNCTION_MARK) return FUNCTION;
  heddle__api_refuse("%s: the handle is no module, function or array", caller);
  return ROOT;
}

int TVMObjectGetTypeIndex(TVMObjectHandle obj, unsigned *out_tindex) {
  heddle__array *a;
  if (out_tindex == NULL) return heddle__api_refuse("TVMObjectGetTypeIndex: out is NULL");
  *out_tindex = kind_of("TVMObjectGetTypeIndex", obj, &a);
  heddle__array_release(a);
  return *out_tindex != ROOT ? 0 : -1;
}

int TVMObjectTypeKey2Index(const char *type_key, unsigned *out_tindex) {
  for (int i = 0; i < TYPES && type_key != NULL && out_tindex != NULL; i++) {
    if (strcmp(types[i].key, type_key) != 0) continue;
    *out_tindex = types[i].index;
    return 0;
  }
  return heddle__api_refuse("there are no objects of type '%.100s'", type_key != NULL ? type_key : "");
}

int TVMObjectTypeIndex2Key(unsigned tindex, char **out_type_key) {
  for (int i = 0; i < TYPES && out_type_key != NULL; i++) {
    if (types[i].index != tindex) continue;
    *out_type_key = malloc(strlen(types[i].key) + 1); /* the caller frees it, with free() */
    if (*out_type_key == NULL) return heddle__api_refuse("out of memory: a name");
    strcpy(*out_type_key, types[i].key);
    return 0;
  }
  return heddle__api_refuse("there are no objects of type %u", tindex);
}

int TVMObjectRetain(TVMObjectHandle obj) {
  heddle__array *a; /* its reference stays */
  unsigned kind = kind_of("TVMObjectRetain", obj, &a);
  if (kind == MODULE) heddle__object_retain(obj);
  else if (kind == FUNCTION) heddle__function_retain(obj);
  return kind != ROOT ? 0 : -1;
}

int TVMObjectFree(TVMObjectHandle obj) {
  heddle__array *a;
  if (obj == NULL) return 0;
  unsigned kind = kind_of("TVMObjectFree", obj, &a);
  if (kind == MODULE) heddle__object_release(obj);
  else if (kind == FUNCTION) heddle__function_release(obj);
  else if (kind == ARRAY) {
    heddle__array_release(a); /* the search's */
    heddle__array_release(a);
  }
  return kind != ROOT ? 0 : -1;
}

int TVMObjectDerivedFrom(uint32_t child_type_index, uint32_t parent_type_index, int *is_derived) {
  if (is_derived == NULL) return heddle__api_refuse("TVMObjectDerivedFrom: out is NULL");
  *is_derived = parent_type_index == ROOT || parent_type_index == child_type_index;
  return 0;
}

/* Nothing that calls return is such: bytes are the thread's. NULL is taken. */
int TVMByteArrayFree(TVMByteArray *arr) {
  const heddle__bytes *own = &heddle__tvm_self()->bytes;
  if (arr == NULL || (const void *)arr == (const void *)own) return 0;
  return heddle__api_refuse("TVMByteArrayFree: no call returned these bytes to this thread");
}

const char *heddle__api_dtype_name(heddle_dtype t) {
  char text[40];
  heddle__tvm_dtype_text(t, text);
  return heddle__tvm_keep(text, strlen(text));
}
