/* modules/tvm/registry.h: functions as values, and those that are registered by name. A function that is not counted
 * (references 0) is immortal: compiled code keeps such handles in its own memory, without telling. */
#ifndef HEDDLE_MODULES_TVM_REGISTRY_H
#define HEDDLE_MODULES_TVM_REGISTRY_H

#include "modules/tvm/thread.h"

/* Arguments as packed functions have them, in either generation; a result goes to *ret and *ret_code, which say "none"
 * when it is called. 0: done; else it failed, and reported it (heddle__tvm_say). What a result points to is the
 * thread's or the caller's to give back, by its code: objects (PACKED_MODULE, PACKED_FUNCTION, PACKED_NDARRAY) carry a
 * reference, strings and bytes live until this thread's next result of that kind. */
typedef int (*heddle__tvm_fn)(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                              int32_t *ret_code);

/* What compiled code and TVM's C API hold as a function handle. */
struct heddle_function {
  uint64_t mark; /* HEDDLE__FUNCTION_MARK, which distinguishes the kinds of handles; no address */
  const char *name;
  heddle__tvm_fn call; /* NULL: it is the head of a kernel (launch.h) */
  void *self;
  void (*finish)(void *self); /* with the last reference; may be NULL */
  atomic_uint references;     /* 0: it is not counted, and never ends */
};

#define HEDDLE__FUNCTION_MARK UINT64_C(0xf4eddf0000000001)
#define HEDDLE__OBJECT_MARK UINT64_C(0xf4eddf0000000002)

/* A counted function with one reference; NULL where memory is out (self is then not finished). name: copied, or NULL. */
heddle_function *heddle__function_new(const char *name, heddle__tvm_fn call, void *self, void (*finish)(void *self));
heddle_function *heddle__function_retain(heddle_function *f); /* takes what is not counted, too */
void heddle__function_release(heddle_function *f);            /* and NULL */

/* Calls a function or launches a kernel. *ret and *ret_code are always written, last. */
int heddle__function_call(heddle_function *f, const heddle__word *args, const int32_t *codes, int32_t n,
                          heddle__word *ret, int32_t *ret_code);

/* By name; a reference, NULL: there is none. Any thread. */
heddle_function *heddle__registry_find(const char *name);

/* Registers f under a name, taking a reference of its own. A function that compiled code was given under that name stays
 * alive. false with a message (heddle__tvm_say) where the name is taken and is not to be overridden, or memory is
 * out. Any thread. */
bool heddle__registry_set(const char *name, heddle_function *f, bool override);
bool heddle__registry_remove(const char *name); /* false: there is none */

/* All names in alphabetical order, as one block freed with heddle__free; NULL where memory is out. */
const char **heddle__registry_names(int *n);

/* What compiled code asks for: as registry_find, but the function is never freed after it was given. */
heddle_function *heddle__registry_pin(const char *name);

/* launch.c: __tvm_set_device(type, number) */
int heddle__tvm_alloc_image(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code);
int heddle__tvm_free_image(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code);
int heddle__tvm_set_device(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code);

/* api_globals.c */
int heddle__tvm_load_so(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                        int32_t *ret_code);
int heddle__tvm_load_file(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                          int32_t *ret_code);
int heddle__tvm_system_lib(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code);
int heddle__tvm_device_attr(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code);
int heddle__tvm_set_stream(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code);

/* sort.c: tvm.contrib.sort.* */
int heddle__tvm_sort(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                     int32_t *ret_code);
int heddle__tvm_argsort(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                        int32_t *ret_code);
int heddle__tvm_argsort_nms(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code);
int heddle__tvm_topk(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                     int32_t *ret_code);

/* executor_create.c: executors of (json, module, devices), and parameters; timing.c: runtime.RPCTimeEvaluator */
int heddle__executor_create(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code);
int heddle__executor_create_debug(void *self, const heddle__word *args, const int32_t *codes, int32_t n,
                                  heddle__word *ret, int32_t *ret_code);
int heddle__params_load(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                        int32_t *ret_code);
int heddle__params_save(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                        int32_t *ret_code);
int heddle__time_evaluator(void *self, const heddle__word *args, const int32_t *codes, int32_t n, heddle__word *ret,
                           int32_t *ret_code);

#endif
