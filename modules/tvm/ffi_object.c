/* modules/tvm/ffi_object.c: objects of ours in tvm-ffi's layout: strings, bytes, functions, modules and arrays that
 * compiled code of v0.21 and later is given, and what such code hands back. */
#include "modules/tvm/ffi_object.h"

#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/convert.h"

enum { BYTES_OBJECT = 66, FUNCTION_OBJECT = 68, TENSOR_OBJECT = 70, TENSOR_OBJECT21 = 72, MODULE_OBJECT = 73 };
enum { SMALL_BYTES = 12, HEAD = 24, HEAD21 = 16 };

/* Before the object, which is what others see. */
typedef struct own {
  heddle__word held; /* by its code; strings and bytes hold nothing */
  int32_t code;
  bool era21;
} own;

_Static_assert(sizeof(own) == 16 && sizeof(heddle__object) == HEAD && sizeof(heddle__object21) == HEAD21, "objects");

/* What stands behind the head of a function: how others call it. */
typedef struct cell {
  heddle__ffi_fn call;
  void *cpp_call;
} cell;

static own *own_of(void *object) {
  return (own *)object - 1;
}

/* flags: 1, the last strong reference is gone; 2, the last weak one. */
static void delete_new(void *self, int flags) {
  if (flags & 1) heddle__result_drop(own_of(self)->held, own_of(self)->code);
  if (flags & 2) heddle__free(own_of(self));
}

static void delete_old(void *self) {
  heddle__result_drop(own_of(self)->held, own_of(self)->code);
  heddle__free(own_of(self));
}

static own *ours(void *object, bool era21) {
  bool is =
      era21 ? ((heddle__object21 *)object)->deleter == delete_old : ((heddle__object *)object)->deleter == delete_new;
  return is ? own_of(object) : NULL;
}

heddle_function *heddle__handle_function(void *handle) {
  if (((heddle_function *)handle)->mark == HEDDLE__FUNCTION_MARK) return handle;
  own *o = ours(handle, false);
  if (o == NULL) o = ours(handle, true);
  return o != NULL && o->code == PACKED_FUNCTION ? o->held.p : NULL;
}

static int32_t call_new(void *self, const heddle__any *args, int32_t n, heddle__any *result) {
  return heddle__tvm_call_ffi(self, args, n, result);
}

static int32_t call_old(void *self, const heddle__any *args, int32_t n, heddle__any *result) {
  return heddle__tvm_call_ffi21(self, args, n, result);
}

static const void *behind_head(const void *object, bool era21) {
  return (const char *)object + (era21 ? HEAD21 : HEAD);
}

bool heddle__any_to_word(const heddle__any *any, bool era21, heddle__word *word, int32_t *code, heddle__bytes *spare) {
  static const uint8_t plain[] = {PACKED_NULL,  PACKED_INT,    PACKED_INT,    PACKED_FLOAT,  PACKED_HANDLE,
                                  PACKED_DTYPE, PACKED_DEVICE, PACKED_TENSOR, PACKED_STRING, PACKED_BYTES};
  *word = any->v;
  if (any->type >= 0 && any->type < (int32_t)sizeof plain) {
    *code = plain[any->type];
    return true;
  }
  if (any->type == ANY_SMALL_STRING) { /* ends in a zero byte, being of at most seven */
    *code = PACKED_STRING;
    word->s = (const char *)&any->v;
    return true;
  }
  if (any->type == SMALL_BYTES) {
    *code = PACKED_BYTES;
    *spare = (heddle__bytes){(const char *)&any->v, any->zero < sizeof any->v ? any->zero : sizeof any->v};
    word->p = spare;
    return true;
  }
  if (any->type < ANY_OBJECT || any->v.p == NULL) return false;
  own *o = ours(any->v.p, era21);
  if (o != NULL && o->code != PACKED_STRING && o->code != PACKED_BYTES) {
    *word = o->held;
    *code = o->code;
    return true;
  }
  const void *body = behind_head(any->v.p, era21);
  word->p = (void *)(uintptr_t)body;
  if (any->type == ANY_STRING_OBJECT) {
    *code = PACKED_STRING;
    word->s = ((const heddle__bytes *)body)->data;
  } else if (any->type == BYTES_OBJECT) *code = PACKED_BYTES;
  else if (any->type == (era21 ? TENSOR_OBJECT21 : TENSOR_OBJECT)) *code = PACKED_TENSOR;
  else return false;
  return true;
}

/* An object with room behind its head; NULL with words, and what was to be held is given back. */
static void *make(heddle__word held, int32_t code, int32_t type, size_t room, bool era21) {
  own *o = heddle__alloc(1, sizeof *o + HEAD + room);
  if (o == NULL) {
    heddle__result_drop(held, code);
    heddle__tvm_say(NULL, "out of memory: a value of a call");
    return NULL;
  }
  *o = (own){held, code, era21};
  if (era21) *(heddle__object21 *)(void *)(o + 1) = (heddle__object21){type, 1, delete_old};
  else *(heddle__object *)(void *)(o + 1) = (heddle__object){(UINT64_C(1) << 32) + 1, type, 0, delete_new};
  return o + 1;
}

static bool give_bytes(const char *data, size_t n, int32_t code, bool era21, heddle__any *any) {
  bool is_text = code == PACKED_STRING;
  if (n < sizeof any->v && !era21) {
    *any = (heddle__any){.type = is_text ? ANY_SMALL_STRING : SMALL_BYTES, .zero = (uint32_t)n};
    if (n > 0) memcpy(&any->v, data, n);
    return true;
  }
  int32_t type = is_text ? ANY_STRING_OBJECT : BYTES_OBJECT;
  void *object = make((heddle__word){0}, code, type, sizeof(heddle__bytes) + n + 1, era21);
  if (object == NULL) return false;
  heddle__bytes *body = (heddle__bytes *)(uintptr_t)behind_head(object, era21);
  char *copy = (char *)(body + 1);
  if (n > 0) memcpy(copy, data, n);
  *body = (heddle__bytes){copy, n};
  *any = (heddle__any){.type = type, .v.p = object};
  return true;
}

bool heddle__word_to_any(heddle__word word, int32_t code, bool era21, heddle__any *any) {
  enum { UINT = 1 };
  int32_t type = ANY_NONE;
  *any = (heddle__any){.type = ANY_NONE};
  if (heddle__word_is_null(word, code)) return true;
  switch (code) {
  case PACKED_NULL: return true;
  case PACKED_INT:
  case UINT: type = ANY_INT; break;
  case PACKED_BOOL: type = ANY_BOOL; break;
  case PACKED_FLOAT: type = ANY_FLOAT; break;
  case PACKED_HANDLE: type = ANY_POINTER; break;
  case PACKED_DTYPE: type = ANY_DTYPE; break;
  case PACKED_DEVICE: type = ANY_DEVICE; break;
  case PACKED_STRING: return give_bytes(word.s, strlen(word.s), code, era21, any);
  case PACKED_BYTES:
    return give_bytes(((heddle__bytes *)word.p)->data, ((heddle__bytes *)word.p)->size, code, era21, any);
  case PACKED_MODULE: type = MODULE_OBJECT; break;
  case PACKED_FUNCTION: type = FUNCTION_OBJECT; break;
  case PACKED_NDARRAY: type = era21 ? TENSOR_OBJECT21 : TENSOR_OBJECT; break;
  default: heddle__tvm_say(NULL, "a function returned what code of this generation cannot take"); return false;
  }
  *any = (heddle__any){.type = type, .v = word};
  if (type < ANY_OBJECT) return true;
  void *object = make(word, code, type, sizeof(heddle__dltensor), era21);
  if (object == NULL) {
    *any = (heddle__any){.type = ANY_NONE};
    return false;
  }
  void *body = (void *)(uintptr_t)behind_head(object, era21);
  if (code == PACKED_FUNCTION) *(cell *)body = (cell){era21 ? call_old : call_new, NULL};
  if (code == PACKED_NDARRAY) *(heddle__dltensor *)body = ((heddle__array *)word.p)->t;
  any->v.p = object;
  return true;
}
