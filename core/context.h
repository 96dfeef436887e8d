/* core/context.h: what a context holds, for the rooms above core. */
#ifndef HEDDLE_CORE_CONTEXT_H
#define HEDDLE_CORE_CONTEXT_H

#include "core/device.h"
#include "core/log.h"
#include "core/pool.h"

/* The context's thread pool; never NULL. */
heddle__pool *heddle__context_pool(heddle_context *ctx);

/* The context's log. */
heddle__log *heddle__context_log(heddle_context *ctx);

/* A setting as a number; fallback where unset; HEDDLE_EINVAL, naming key and origin, where it is none or outside
 * [min, max]. */
heddle_status heddle__context_number(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                                     int64_t *out, heddle_error *err);

/* Gives the caller as much of an answer (a struct that begins with struct_size) as he knows of; out keeps the size that he
 * wrote, which HEDDLE_EINVAL says to be odd. */
heddle_status heddle__info_give(void *out, const void *answer, size_t bytes, heddle_error *err);

/* HEDDLE_EFORK in a child of a process that had opened a device, in whatever context. One atomic load. */
heddle_status heddle__check_fork(heddle_error *err);

/* An open trace collects spans of host and plugins until it is written; NULL when none is open. See core/trace.h. */
struct heddle__trace;
struct heddle__trace *heddle__context_trace(heddle_context *ctx);

/* What another part of the library attaches to a context: the first member of its struct. free is called when the context ends
 * and no device is open. */
typedef struct heddle__attachment {
  void (*free)(struct heddle__attachment *self);
} heddle__attachment;

/* Gives it, made by make when it is first asked for; NULL: make gave none. Only the table of routes is attached so. Any thread;
 * takes no lock. */
heddle__attachment *heddle__context_attached(heddle_context *ctx, heddle__attachment *(*make)(void));

uint64_t heddle__now_ns(void);

#endif
