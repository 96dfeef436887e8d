/* What a stream's thread does when a piece of work's turn has come: the check that its memory may be used now, what is
 * ordered to go wrong, and then the work itself. */
#include "engine_inside.h"

static const char *wrong_memory(const eng_work *w) {
  const char *wrong = NULL;
  if (w->kind == ENG_WORK_KERNEL) return eng_kernel_wrong(w);
  if (w->kind == ENG_WORK_FILL)
    return eng_memory_wrong(w->ctx, (uint64_t)(uintptr_t)w->fill.dst, w->fill.count * w->fill.width, true);
  if (w->kind == ENG_WORK_WRITE)
    return eng_allocation_at(w->address) == NULL ? "is not allocated, and a number is written to it" : NULL;
  if (w->kind != ENG_WORK_COPY) return NULL;
  const eng_copy_kind kind = w->copy.kind;
  if (kind == ENG_H2D || kind == ENG_D2D)
    wrong = eng_memory_wrong(w->ctx, (uint64_t)(uintptr_t)w->copy.dst, w->copy.bytes, true);
  if (wrong == NULL && (kind == ENG_D2H || kind == ENG_D2D))
    wrong = eng_memory_wrong(w->ctx, (uint64_t)(uintptr_t)w->copy.src, w->copy.bytes, true);
  return wrong;
}

static void fill(const eng_work *w) {
  char *at = w->fill.dst;
  if (w->fill.width == 1) {
    memset(at, (int)(w->fill.word & 0xFFu), w->fill.count);
    return;
  }
  const uint16_t half = (uint16_t)w->fill.word;
  const uint32_t word = w->fill.word;
  for (size_t i = 0; i < w->fill.count; i++, at += w->fill.width)
    memcpy(at, w->fill.width == 2 ? (const void *)&half : (const void *)&word, w->fill.width);
}

static void host(const eng_work *w, int fault) {
  eng_in_host_function = true;
  eng_nap(eng_setting()->host_us);
  if (w->kind == ENG_WORK_CALLBACK) w->host.callback(w->host.stream, fault, w->host.arg);
  else w->host.fn(w->host.arg);
  eng_in_host_function = false;
}

static _Noreturn void hang(void) {
  for (;;) nanosleep(&(struct timespec){3600, 0}, NULL);
}

static const char *name_of(eng_work_kind kind) {
  switch (kind) {
  case ENG_WORK_KERNEL: return "launch";
  case ENG_WORK_COPY: return "copy";
  case ENG_WORK_FILL: return "fill";
  case ENG_WORK_WRITE: return "write";
  case ENG_WORK_HOST:
  case ENG_WORK_CALLBACK: return "host";
  default: return NULL;
  }
}

/* The context's fault, or one that begins here. */
static int fault_of(const eng_work *w) {
  int code = w->ctx->fault;
  const char *name = name_of(w->kind);
  if (code != ENG_OK || name == NULL) return code;
  switch (eng_order_of(name, &code)) {
  case ENG_ORDER_NONE: break;
  case ENG_ORDER_FAULT: eng_context_fault(w->ctx, code); return code;
  case ENG_ORDER_HANG: eng_leave(); hang();
  }
  const char *wrong = wrong_memory(w);
  if (wrong == NULL) return ENG_OK;
  eng_misuse("a %s uses memory that %s", name, wrong);
  eng_context_fault(w->ctx, ENG_ILLEGAL_ADDRESS);
  return ENG_ILLEGAL_ADDRESS;
}

int eng_work_run(const eng_work *w, eng_queue *queue) {
  /* Kernels follow each other in PoCL's queue; all else is done here, behind them. */
  if (w->kind != ENG_WORK_KERNEL && w->kind != ENG_WORK_PLAN) eng_queue_finish(queue);
  eng_enter();
  int code = fault_of(w);
  if (w->kind == ENG_WORK_ALLOC) eng_memory_ready(w->address);
  if (w->kind == ENG_WORK_RECORD && code == ENG_OK) eng_event_reached(w->event);
  if (w->kind == ENG_WORK_FREE) eng_memory_release(w->address);
  eng_leave();
  if (w->kind == ENG_WORK_CALLBACK) host(w, code);
  if (code != ENG_OK) return code;
  switch (w->kind) {
  case ENG_WORK_COPY: memmove(w->copy.dst, w->copy.src, w->copy.bytes); break;
  case ENG_WORK_FILL: fill(w); break;
  case ENG_WORK_WRITE: __atomic_store_n((uint64_t *)(uintptr_t)w->address, w->value, __ATOMIC_RELEASE); break;
  case ENG_WORK_HOST: host(w, ENG_OK); break;
  case ENG_WORK_PLAN: code = eng_plan_run(w->plan, queue); break;
  case ENG_WORK_KERNEL: code = eng_kernel_run(w->kernel.code, w, queue); break;
  default: break;
  }
  if (code != ENG_OK && w->kind == ENG_WORK_KERNEL) {
    eng_enter();
    eng_context_fault(w->ctx, code);
    eng_leave();
  }
  return code;
}
