/* Devices and contexts: a thread has a stack of current contexts, and a context that faulted answers every call with
 * its fault. A context that goes takes all with it that was left in it, and each of those is a leak. */
#include "engine_inside.h"

#include <stdio.h>

#define STACK 16

static eng_device devices[ENG_DEVICES];
static eng_context *primary[ENG_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local eng_context *stack[STACK];
static _Thread_local int depth;

static void make_devices(void) {
  const eng_settings *s = eng_setting();
  const char *digits = strpbrk(s->arch, "0123456789");
  const int version = digits != NULL ? atoi(digits) : 0;
  for (int i = 0; i < s->devices; i++) {
    eng_device *d = &devices[i];
    d->ordinal = i;
    snprintf(d->name, sizeof d->name, "Fake GPU %d", i);
    snprintf(d->arch, sizeof d->arch, "%s", s->arch);
    snprintf(d->pci, sizeof d->pci, "0000:%02x:00.0", (unsigned)(i + 1) & 0xFFu);
    memcpy(d->uuid, "fake gpu device", 15);
    d->uuid[15] = (uint8_t)i;
    d->memory = s->memory;
    d->major = version / 10;
    d->minor = version % 10;
    d->pools = s->pools;
  }
}

int eng_device_count(void) {
  pthread_once(&once, make_devices);
  return eng_setting()->devices;
}

const eng_device *eng_device_get(int ordinal) {
  return ordinal >= 0 && ordinal < eng_device_count() ? &devices[ordinal] : NULL;
}

bool eng_device_mig(void) {
  return eng_setting()->mig;
}

int eng_device_peer(int device, int peer) {
  const char *setting = getenv("FAKE_GPU_PEERS");
  return device != peer && eng_device_get(device) != NULL && eng_device_get(peer) != NULL &&
         (setting == NULL || setting[0] != '0');
}

/* ---------------------------------------------------------------- current */

eng_context *eng_current(void) {
  return depth > 0 ? stack[depth - 1] : NULL;
}

static int alive(eng_context *ctx, const char *what) {
  eng_enter();
  const bool is = eng_object_is(ctx, ENG_CONTEXT);
  eng_leave();
  if (is) return ENG_OK;
  eng_misuse("%s: %p is no context that is alive", what, (void *)ctx);
  return ENG_INVALID_CONTEXT;
}

int eng_current_set(eng_context *ctx) {
  if (ctx == NULL) {
    if (depth > 0) depth--;
    return ENG_OK;
  }
  const int code = alive(ctx, "a context is made current");
  if (code != ENG_OK) return code;
  if (depth == 0) depth = 1;
  stack[depth - 1] = ctx;
  return ENG_OK;
}

int eng_current_push(eng_context *ctx) {
  const int code = alive(ctx, "a context is pushed");
  if (code != ENG_OK) return code;
  if (depth == STACK) {
    eng_misuse("%d contexts are pushed and not popped", depth);
    return ENG_INVALID_VALUE;
  }
  stack[depth++] = ctx;
  return ENG_OK;
}

int eng_current_pop(eng_context **out) {
  if (depth == 0) {
    eng_misuse("a context is popped where none is current");
    return ENG_INVALID_CONTEXT;
  }
  depth--;
  if (out != NULL) *out = stack[depth];
  return ENG_OK;
}

int eng_context_need(eng_context **out) {
  eng_context *ctx = eng_current();
  if (ctx == NULL) {
    eng_misuse("a call that needs a current context has none");
    return ENG_INVALID_CONTEXT;
  }
  if (!eng_object_is(ctx, ENG_CONTEXT)) {
    eng_misuse("the current context is destroyed");
    return ENG_CONTEXT_DESTROYED;
  }
  *out = ctx;
  return ctx->fault;
}

int eng_healthy(void) {
  eng_context *ctx = NULL;
  eng_enter();
  return eng_leave_with(eng_context_need(&ctx));
}

int eng_context_device(int *out) {
  eng_context *ctx = NULL;
  eng_enter();
  const int code = eng_context_need(&ctx);
  if (code == ENG_OK) *out = ctx->device;
  return eng_leave_with(code);
}

void eng_context_fault(eng_context *ctx, int code) {
  if (ctx->fault == ENG_OK) ctx->fault = code;
  pthread_cond_broadcast(&eng_done);
}

int eng_context_sync(void) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_capture_unsafe("a wait for the context");
  if (code == ENG_OK) {
    eng_streams_await(ctx);
    code = ctx->fault;
  }
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- making */

static eng_context *context_new(int device, bool is_primary) {
  eng_context *ctx = calloc(1, sizeof *ctx);
  if (ctx == NULL) return NULL;
  ctx->device = device;
  ctx->primary = is_primary;
  eng_object_add(&ctx->o, ENG_CONTEXT, ctx);
  return ctx;
}

static void leaks_of(eng_context *ctx, eng_kind kind) {
  eng_object *o;
  while ((o = eng_object_of(ctx, kind)) != NULL) {
    eng_count_leak("a context of device %d is destroyed while one of its %s is alive", ctx->device,
                   eng_kind_words(kind));
    if (kind == ENG_STREAM) eng_stream_close((eng_stream *)o);
    if (kind == ENG_EVENT) eng_event_free((eng_event *)o);
    if (kind == ENG_MODULE) eng_module_free((eng_module *)o);
    if (kind == ENG_GRAPH) eng_graph_free((eng_graph *)o);
    if (kind == ENG_EXEC) eng_exec_free((eng_exec *)o);
  }
}

static void context_free(eng_context *ctx) {
  eng_streams_await(ctx);
  leaks_of(ctx, ENG_EXEC);
  leaks_of(ctx, ENG_GRAPH);
  leaks_of(ctx, ENG_MODULE);
  leaks_of(ctx, ENG_EVENT);
  leaks_of(ctx, ENG_STREAM);
  eng_memory_drop(ctx);
  if (ctx->fallback != NULL) eng_stream_close(ctx->fallback);
  eng_object_retire(&ctx->o);
}

int eng_primary_retain(int device, eng_context **out) {
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  eng_enter();
  if (primary[device] == NULL) primary[device] = context_new(device, true);
  *out = primary[device];
  if (*out == NULL) return eng_leave_with(ENG_OUT_OF_MEMORY);
  (*out)->refs++;
  return eng_leave_with(ENG_OK);
}

int eng_primary_release(int device) {
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  eng_enter();
  eng_context *ctx = primary[device];
  if (ctx == NULL) {
    eng_misuse("the primary context of device %d is released, and nobody holds it", device);
    return eng_leave_with(ENG_INVALID_CONTEXT);
  }
  if (--ctx->refs == 0) {
    primary[device] = NULL;
    context_free(ctx);
  }
  return eng_leave_with(ENG_OK);
}

int eng_primary_reset(int device) {
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  eng_enter();
  eng_context *ctx = primary[device];
  primary[device] = NULL;
  if (ctx != NULL) context_free(ctx);
  return eng_leave_with(ENG_OK);
}

bool eng_primary_active(int device) {
  bool is = false;
  if (eng_device_get(device) == NULL) return false;
  eng_enter();
  is = primary[device] != NULL;
  eng_leave();
  return is;
}

int eng_context_create(int device, eng_context **out) {
  if (eng_device_get(device) == NULL) return ENG_INVALID_DEVICE;
  eng_enter();
  *out = context_new(device, false);
  eng_leave();
  return *out == NULL ? ENG_OUT_OF_MEMORY : eng_current_push(*out);
}

int eng_context_destroy(eng_context *ctx) {
  int code = alive(ctx, "a context is destroyed");
  if (code != ENG_OK) return code;
  if (eng_current() == ctx) depth--;
  eng_enter();
  if (ctx->primary) {
    eng_misuse("a primary context is destroyed: it is released");
    code = ENG_INVALID_CONTEXT;
  } else {
    context_free(ctx);
  }
  return eng_leave_with(code);
}

/* ---------------------------------------------------------------- peers */

int eng_peer_enable(eng_context *peer) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_is(peer, ENG_CONTEXT) ? ENG_OK : ENG_INVALID_CONTEXT;
  if (code == ENG_OK && !eng_device_peer(ctx->device, peer->device)) code = ENG_NO_PEER;
  if (code == ENG_OK && (ctx->peers >> peer->device & 1u) != 0) code = ENG_PEER_ALREADY;
  if (code == ENG_OK) ctx->peers |= 1u << peer->device;
  return eng_leave_with(code);
}

int eng_peer_disable(eng_context *peer) {
  eng_context *ctx = NULL;
  eng_enter();
  int code = eng_context_need(&ctx);
  if (code == ENG_OK) code = eng_object_is(peer, ENG_CONTEXT) ? ENG_OK : ENG_INVALID_CONTEXT;
  if (code == ENG_OK && (ctx->peers >> peer->device & 1u) == 0) code = ENG_PEER_NOT_ENABLED;
  if (code == ENG_OK) ctx->peers &= ~(1u << peer->device);
  return eng_leave_with(code);
}
