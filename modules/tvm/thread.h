/* modules/tvm/thread.h: what compiled code needs of the thread that it runs on. The functions that compiled code calls
 * have no argument for a caller, so the caller, the last error and the scratch memory are the thread's. */
#ifndef HEDDLE_MODULES_TVM_THREAD_H
#define HEDDLE_MODULES_TVM_THREAD_H

#include "modules/module.h"
#include "modules/tvm/abi.h"

struct heddle__scratch;
struct heddle__lane;

/* What a thread keeps: strings and bytes that calls returned, the words of TVMGetLastError, and a list of names. */
enum { HEDDLE__TEXT_STRING, HEDDLE__TEXT_BYTES, HEDDLE__TEXT_ERROR, HEDDLE__TEXT_NAMES, HEDDLE__TEXTS };
typedef struct heddle__text {
  char *data;
  size_t room;
} heddle__text;

typedef struct heddle__tvm_thread {
  heddle__pool *pool;              /* of the caller; NULL outside of a call: parallel loops run on this thread */
  struct heddle__scratch *scratch; /* workspace.c */
  struct heddle__lane *lane;       /* where kernels are launched; NULL: the function that runs is on cpu */
  heddle_status status;            /* of the error below, where a device gave it; else 0 */
  int32_t api_code;
  heddle_error about;                /* where status is not 0: the error itself, for its members */
  bool raised;                       /* the error below is compiled code's own: an assertion, no call that failed */
  char error[944];                   /* what the failed function said; "" where it said nothing */
  heddle__text texts[HEDDLE__TEXTS]; /* text.c */
  heddle__bytes bytes;               /* the last bytes that a call returned */
  void *python_error;                /* of TVMAPISetLastPythonError; borrowed */
} heddle__tvm_thread;

/* This thread's own; never NULL. */
heddle__tvm_thread *heddle__tvm_self(void);

/* host.c: libheddle's functions, set once by the entry. */
const heddle__tvm_host *heddle__tvm_host_table(void);

/* error.c: the thread's words: forgets them, sets them (with a kind before, or NULL), and makes an error of them:
 * HEDDLE_EFAILED with "function 'NAME' of FILE: " before. Takes words over that a tvm_ffi in this process was given. */
void heddle__tvm_say(const char *kind, const char *words);
void heddle__tvm_forget(heddle__tvm_thread *self); /* a message that was not fetched stays for TVMGetLastError */
heddle_status heddle__tvm_words(heddle_status usual, heddle_error *err); /* usual: where no device gave a status */
heddle_status heddle__tvm_failed(const char *function, const char *file, heddle_error *err);
/* The same words for what a device's plugin said; heddle__tvm_failed then gives its status. */
void heddle__tvm_say_error(const char *what, const heddle_error *why);

/* A function of the tvm_ffi in this process; NULL where there is none. */
void *heddle__of_tvm_ffi(const char *name);
/* text.c: a terminated copy that lives until this thread's next result of that kind; NULL with words. keep_bytes: with
 * its length, as bytes cross. What is given may be what is kept. */
const char *heddle__tvm_keep(const void *bytes, size_t n);
heddle__bytes *heddle__tvm_keep_bytes(const void *bytes, size_t n);
char *heddle__tvm_keep_as(int kind, const void *bytes, size_t n);
void heddle__tvm_keep_block(int kind, void *block); /* takes over what heddle__alloc gave */

/* What compiled code calls: workspace.c, parallel.c, env.c. Exported by plain name too (exports.c). */
void *heddle__tvm_alloc_workspace(int device_type, int device_id, uint64_t bytes, int code_hint, int bits_hint);
int heddle__tvm_free_workspace(int device_type, int device_id, void *p);
uint64_t heddle__tvm_scratch_most(void); /* bytes of all threads, at most so far */
/* How far this thread's stack on the host is used; and back to there, after a function that failed: compiled code returns
 * at once then, and gives nothing back. */
void *heddle__tvm_scratch_mark(const heddle__tvm_thread *self);
void heddle__tvm_scratch_back(heddle__tvm_thread *self, const void *mark);
int heddle__tvm_parallel_launch(heddle__lambda lambda, void *data, int num_task);
int heddle__tvm_parallel_barrier(int task, heddle__group *group);
void heddle__tvm_set_last_error(const char *words);
void heddle__tvm_raise(const char *kind, const char *words);
void heddle__tvm_raise_parts(const char *kind, const char **parts, int32_t n);
int heddle__tvm_lookup(void *library, const char *name, void **out);
int heddle__tvm_call_packed(void *f, heddle__word *args, int32_t *codes, int32_t n, heddle__word *ret,
                            int32_t *ret_code);
int heddle__tvm_call_ffi(void *f, const heddle__any *args, int32_t n, heddle__any *result);
int heddle__tvm_call_ffi21(void *f, const heddle__any *args, int32_t n, heddle__any *result); /* v0.21 */
int heddle__tvm_init_once(void **handle, int (*init)(void **result));

/* Gives back an object that a call returned. era21: of v0.21, whose objects begin otherwise. */
void heddle__tvm_drop(void *object, bool era21);

#endif
