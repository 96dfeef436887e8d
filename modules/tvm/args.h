/* modules/tvm/args.h: arguments and results of the methods that modules of ours have: taken by position, each refused
 * with a message that names the method and the argument. */
#ifndef HEDDLE_MODULES_TVM_ARGS_H
#define HEDDLE_MODULES_TVM_ARGS_H

#include "modules/tvm/object.h"

/* A function of ours, or a method, whose self is its module: heddle__tvm_fn. */
#define HEDDLE__METHOD(name) \
  int name(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret, int32_t *ret_code)

/* A call, as its method sees it. */
typedef struct heddle__args {
  const char *method;
  const heddle__word *args;
  const int32_t *codes;
  int32_t n;
} heddle__args;

/* Words of a method's own; -1. */
int heddle__refuse(const char *method, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The words of an error, after the method's name; -1. */
int heddle__refuse_error(const char *method, const heddle_error *err);

/* False with words. Positions count from 0. */
bool heddle__args_count(const heddle__args *a, int32_t least, int32_t most);
bool heddle__args_int(const heddle__args *a, int32_t i, int64_t low, int64_t high, int64_t *out);
bool heddle__args_name(const heddle__args *a, int32_t i, const char **out);                /* a string */
bool heddle__args_text(const heddle__args *a, int32_t i, const char **out, size_t *bytes); /* string or bytes */
bool heddle__args_object(const heddle__args *a, int32_t i, heddle_object **out);           /* borrowed; NULL for null */

/* A tensor, with a reference: heddle__argument_tensor, whose words come after the method's name. NULL with words. */
heddle_tensor *heddle__args_tensor(const heddle__args *a, int32_t i);

/* Devices from position i on: values of devices, or pairs of type and number. out: room for n entries. */
bool heddle__args_devices(const heddle__args *a, int32_t i, int32_t (*out)[2], uint32_t *n);

/* Results. -1 with words where memory is out. */
int heddle__give_int(int64_t value, heddle__word *ret, int32_t *ret_code);
int heddle__give_text(const char *text, size_t n, heddle__word *ret, int32_t *ret_code);
int heddle__give_bytes(const void *bytes, size_t n, heddle__word *ret, int32_t *ret_code);
int heddle__give_tensor(heddle_tensor *t, heddle__word *ret, int32_t *ret_code); /* takes the reference over */
int heddle__give_object(heddle_object *o, heddle__word *ret, int32_t *ret_code); /* so too; NULL: -1 */

/* Methods by name. */
typedef struct heddle__method {
  const char *name;
  heddle__tvm_fn call;
} heddle__method;

/* The method of that name as a function of o, or *out NULL; as heddle__object_type.find. */
int heddle__method_find(const heddle__method *methods, size_t n, heddle_object *o, const char *name,
                        heddle_function **out);

#endif
