/* conformance/kit_calls.c: a function of the kit's before each function of the plugin's, which notes on the page that the
 * parent reads which call the process is in: a death or a hang is reported with it. */
#include <stddef.h>
#include <string.h>

#include "conformance/kit_side.h"

#define INSTANCE heddle_pinstance *self
#define DEV heddle_pdevice *dev
#define BUFFER heddle_pbuffer *buffer
#define STREAM heddle_pstream *stream
#define ERR heddle_error *err

/* S(group, function, parameters, arguments): one that returns a status. O: one that has an out-argument of that name too. */
#define STATUS_CALLS(S, O) \
  O(device, open, (INSTANCE, uint32_t i, const heddle_pdevice_options *o, heddle_pdevice **out, ERR), \
    (self, i, o, out, err)) \
  O(device, query, (DEV, uint32_t key, int64_t * out, ERR), (dev, key, out, err)) \
  S(device, health, (DEV, ERR), (dev, err)) \
  S(device, idle, (DEV, uint64_t timeout_ns, ERR), (dev, timeout_ns, err)) \
  S(device, reset, (DEV, uint64_t timeout_ns, ERR), (dev, timeout_ns, err)) \
  S(device, memory_now, (DEV, uint64_t * a, uint64_t * b, ERR), (dev, a, b, err)) \
  O(memory, alloc, (DEV, const heddle_pmemory_desc *desc, heddle_pbuffer **out, ERR), (dev, desc, out, err)) \
  O(memory, view, (DEV, heddle_pbuffer * parent, uint64_t offset, uint64_t bytes, heddle_pbuffer * *out, ERR), \
    (dev, parent, offset, bytes, out, err)) \
  O(memory, import_host, (DEV, void *pointer, uint64_t bytes, heddle_pbuffer **out, ERR), \
    (dev, pointer, bytes, out, err)) \
  O(memory, map, (DEV, BUFFER, void **out, ERR), (dev, buffer, out, err)) \
  S(memory, flush, (DEV, BUFFER, uint64_t offset, uint64_t bytes, ERR), (dev, buffer, offset, bytes, err)) \
  S(memory, invalidate, (DEV, BUFFER, uint64_t offset, uint64_t bytes, ERR), (dev, buffer, offset, bytes, err)) \
  O(memory, native, (DEV, BUFFER, uint64_t * out, ERR), (dev, buffer, out, err)) \
  O(memory, adopt, (DEV, uint64_t handle, uint64_t a, uint64_t bytes, heddle_pbuffer * *out, ERR), \
    (dev, handle, a, bytes, out, err)) \
  S(copy, h2d, (STREAM, heddle_pbuffer * dst, uint64_t a, heddle_pbuffer * host, uint64_t b, uint64_t bytes, ERR), \
    (stream, dst, a, host, b, bytes, err)) \
  S(copy, d2h, (STREAM, heddle_pbuffer * host, uint64_t a, heddle_pbuffer * src, uint64_t b, uint64_t bytes, ERR), \
    (stream, host, a, src, b, bytes, err)) \
  S(copy, write, (STREAM, heddle_pbuffer * dst, uint64_t a, const void *src, uint64_t bytes, ERR), \
    (stream, dst, a, src, bytes, err)) \
  S(copy, read, (STREAM, void *dst, heddle_pbuffer *src, uint64_t a, uint64_t bytes, ERR), \
    (stream, dst, src, a, bytes, err)) \
  S(copy, d2d, (STREAM, heddle_pbuffer * dst, uint64_t a, heddle_pbuffer * src, uint64_t b, uint64_t bytes, ERR), \
    (stream, dst, a, src, b, bytes, err)) \
  S(copy, fill, (STREAM, heddle_pbuffer * dst, uint64_t a, uint64_t bytes, uint32_t pattern, ERR), \
    (stream, dst, a, bytes, pattern, err)) \
  S(copy, can_peer, (INSTANCE, uint32_t dst, uint32_t src, ERR), (self, dst, src, err)) \
  S(copy, peer, \
    (STREAM, heddle_pdevice * dst_dev, heddle_pbuffer * dst, uint64_t a, heddle_pdevice * src_dev, \
     heddle_pbuffer * src, uint64_t b, uint64_t bytes, ERR), \
    (stream, dst_dev, dst, a, src_dev, src, b, bytes, err)) \
  O(stream, create, (DEV, uint32_t kind, int32_t priority, heddle_pstream * *out, ERR), \
    (dev, kind, priority, out, err)) \
  S(stream, submit, (STREAM, ERR), (stream, err)) \
  S(stream, sync, (STREAM, uint64_t timeout_ns, ERR), (stream, timeout_ns, err)) \
  S(stream, query, (STREAM, ERR), (stream, err)) \
  O(stream, adopt, (DEV, uint64_t handle, heddle_pstream * *out, ERR), (dev, handle, out, err)) \
  O(event, create, (DEV, heddle_pevent * *out, ERR), (dev, out, err)) \
  S(event, record, (heddle_pevent * event, STREAM, ERR), (event, stream, err)) \
  S(event, wait, (STREAM, heddle_pevent * event, ERR), (stream, event, err)) \
  S(fence, signal, (STREAM, heddle_pfence fence, uint64_t value, ERR), (stream, fence, value, err)) \
  S(fence, wait, (STREAM, heddle_pfence fence, uint64_t value, ERR), (stream, fence, value, err)) \
  S(op, query, (INSTANCE, uint32_t i, const heddle_pregion *region, heddle_offer_fn offer, void *sink, ERR), \
    (self, i, region, offer, sink, err)) \
  O(op, prepare, (DEV, const heddle_pregion *region, uint32_t offer, heddle_pop **out, ERR), \
    (dev, region, offer, out, err)) \
  O(op, bind, (heddle_pop * op, STREAM, const heddle_pbind *operands, heddle_plaunch **out, ERR), \
    (op, stream, operands, out, err)) \
  S(op, run, (heddle_plaunch * launch, ERR), (launch, err)) \
  S(op, resize, (heddle_plaunch * launch, const heddle_pregion *region, const heddle_pbind *operands, ERR), \
    (launch, region, operands, err)) \
  S(op, partition, (INSTANCE, uint32_t i, const heddle_pregion *region, heddle_propose_fn propose, void *sink, ERR), \
    (self, i, region, propose, sink, err)) \
  S(op, list, (INSTANCE, uint32_t i, heddle_list_fn list, void *sink, ERR), (self, i, list, sink, err)) \
  S(layout, bytes, (INSTANCE, uint32_t i, const heddle_pvalue *tensor, uint64_t *bytes, uint64_t *align, ERR), \
    (self, i, tensor, bytes, align, err)) \
  S(layout, pack, (INSTANCE, uint32_t i, const heddle_pvalue *tensor, void *dst, uint64_t bytes, ERR), \
    (self, i, tensor, dst, bytes, err)) \
  S(layout, describe, (INSTANCE, uint32_t i, heddle_layout layout, char *buf, uint64_t bytes, ERR), \
    (self, i, layout, buf, bytes, err)) \
  O(module, load, (DEV, const char *format, const void *data, uint64_t bytes, heddle_pmodule **out, ERR), \
    (dev, format, data, bytes, out, err)) \
  O(module, kernel_get, \
    (heddle_pmodule * module, const char *name, heddle_pkernel **out, heddle_pkernel_info *info, ERR), \
    (module, name, out, info, err)) \
  S(module, launch, \
    (STREAM, heddle_pkernel * kernel, const uint32_t *grid, const uint32_t *block, uint32_t shared_bytes, \
     const heddle_pargument *args, uint32_t n_args, ERR), \
    (stream, kernel, grid, block, shared_bytes, args, n_args, err)) \
  S(capture, begin, (STREAM, ERR), (stream, err)) \
  O(capture, end, (STREAM, heddle_pgraph * *out, ERR), (stream, out, err)) \
  S(capture, replay, (heddle_pgraph * graph, STREAM, ERR), (graph, stream, err)) \
  O(timing, create, (DEV, uint32_t slots, heddle_ptimer * *out, ERR), (dev, slots, out, err)) \
  S(timing, mark, (STREAM, heddle_ptimer * timer, uint32_t slot, ERR), (stream, timer, slot, err)) \
  S(timing, read, (heddle_ptimer * timer, uint32_t first, uint32_t count, uint64_t * out_ns, ERR), \
    (timer, first, count, out_ns, err)) \
  S(timing, calibrate, (DEV, uint64_t * device_ns, uint64_t * host_ns, ERR), (dev, device_ns, host_ns, err)) \
  O(external, export_memory, (DEV, BUFFER, uint32_t kind, int64_t * out, ERR), (dev, buffer, kind, out, err)) \
  O(external, import_memory, (DEV, uint32_t kind, int64_t handle, uint64_t bytes, heddle_pbuffer * *out, ERR), \
    (dev, kind, handle, bytes, out, err))

/* V(group, function, parameters, arguments): one that returns nothing. */
#define VOID_CALLS(V) \
  V(device, close, (DEV), (dev)) \
  V(memory, free, (DEV, BUFFER), (dev, buffer)) \
  V(memory, unmap, (DEV, BUFFER), (dev, buffer)) \
  V(stream, close, (STREAM), (stream)) \
  V(event, free, (heddle_pevent * event), (event)) \
  V(op, launch_free, (heddle_plaunch * launch), (launch)) \
  V(op, op_free, (heddle_pop * op), (op)) \
  V(module, unload, (heddle_pmodule * module), (module)) \
  V(capture, free, (heddle_pgraph * graph), (graph)) \
  V(timing, free, (heddle_ptimer * timer), (timer))

/* The same of the root table; the first is no member of it. */
#define ROOT_STATUS_CALLS(S, O) \
  O(root, open_instance, (const heddle_host *host, heddle_pinstance **out, ERR), (host, out, err)) \
  S(root, device_count, (INSTANCE, uint32_t * out, ERR), (self, out, err)) \
  S(root, device_describe, (INSTANCE, uint32_t i, heddle_pdevice_desc * desc, ERR), (self, i, desc, err))

#define NUMBER(group, function, parameters, arguments) CALL_##group##_##function,
enum {
  CALL_NONE,
  CALL_ENTRY,
  STATUS_CALLS(NUMBER, NUMBER) VOID_CALLS(NUMBER) ROOT_STATUS_CALLS(NUMBER, NUMBER) NUMBER(root, close_instance, , )
      CALLS
};
#undef NUMBER

const char *kit_call_name(unsigned call) {
#define NAME(group, function, parameters, arguments) #group "." #function,
  static const char *const names[CALLS] = {NULL, "heddle_plugin_entry",
                                           STATUS_CALLS(NAME, NAME) VOID_CALLS(NAME)
                                               ROOT_STATUS_CALLS(NAME, NAME) "root.close_instance"};
#undef NAME
  return call < CALLS ? names[call] : NULL;
}

unsigned kit_call_entry(void) {
  return CALL_ENTRY;
}

unsigned kit_call_number(const char *name) {
  unsigned call = CALLS - 1;
  while (call > 0 && (kit_call_name(call) == NULL || strcmp(kit_call_name(call), name) != 0)) call--;
  return call;
}

bool kit_call_is_prompt(unsigned call) {
  switch (call) {
  case CALL_device_query:
  case CALL_device_health:
  case CALL_copy_h2d:
  case CALL_copy_d2h:
  case CALL_copy_d2d:
  case CALL_copy_fill:
  case CALL_copy_peer:
  case CALL_stream_submit:
  case CALL_stream_query:
  case CALL_event_record:
  case CALL_event_wait:
  case CALL_fence_signal:
  case CALL_fence_wait:
  case CALL_op_run: return true;
  default: return false;
  }
}

_Static_assert(CALLS <= 128, "a call has a bit in kit_page.called");

bool kit_call_in(const _Atomic uint64_t *set, unsigned call) {
  return (atomic_load_explicit(&set[call / 64], memory_order_relaxed) >> call % 64 & 1) != 0;
}

/* The plugin's own functions, and the page: one plugin a process. */
static struct real {
  heddle_plugin root;
  heddle_device_table device;
  heddle_memory_table memory;
  heddle_copy_table copy;
  heddle_stream_table stream;
  heddle_event_table event;
  heddle_fence_table fence;
  heddle_op_table op;
  heddle_layout_table layout;
  heddle_module_table module;
  heddle_capture_table capture;
  heddle_timing_table timing;
  heddle_external_table external;
  kit_page *page;
  kit *k;
} real;

/* Other threads' calls are noted in the same place: a death is in one of them. */
static unsigned enter(unsigned call) {
  if (!kit_call_in(real.page->called, call))
    atomic_fetch_or_explicit(&real.page->called[call / 64], UINT64_C(1) << call % 64, memory_order_relaxed);
  atomic_fetch_add_explicit(&real.page->begun, 1, memory_order_relaxed);
  return atomic_exchange_explicit(&real.page->in, call, memory_order_relaxed);
}

static void leave(unsigned before, unsigned call) {
  atomic_store_explicit(&real.page->in, before, memory_order_relaxed);
  atomic_store_explicit(&real.page->last, call, memory_order_relaxed);
}

/* What every call that fails owes: a text of one line, and its status in err too. The text of an earlier failure is none. */
typedef struct answer {
  heddle_error *err;
  heddle_status status;
  char first;
} answer;

static answer ask(heddle_error *err) {
  const answer a = {err, err != NULL ? err->status : HEDDLE_OK, err != NULL ? err->text[0] : '\0'};
  if (err != NULL) err->status = HEDDLE_OK, err->text[0] = '\0';
  return a;
}

static heddle_status answered(const answer *a, unsigned call, heddle_status status) {
  heddle_error *err = a->err;
  if (err == NULL) return status;
  if (status == HEDDLE_OK) {
    if (err->text[0] == '\0') err->status = a->status, err->text[0] = a->first;
    return status;
  }
  const char *fault = contract_text_fault(err->text, sizeof err->text);
  const char *how = NULL;
  if (fault == NULL && err->text[0] == '\0') how = "left no text";
  else if (fault == NULL && err->status != status) how = "left another status in its heddle_error";
  if (fault == NULL && how == NULL) return status;
  kit_fault_is(real.k, KIT_FAULT_ANSWER, call, 0);
  if (fault != NULL) kit_fail(real.k, "%s failed, and its error text %s", kit_call_name(call), fault);
  kit_fail(real.k, "%s returned %s and %s (status %d, \"%.300s\")", kit_call_name(call), kit_status_name(status), how,
           (int)err->status, err->text);
}

#define DEFINE_STATUS(group, function, parameters, arguments) \
  static heddle_status group##_##function parameters { \
    const answer asked = ask(err); \
    unsigned before = enter(CALL_##group##_##function); \
    heddle_status status = real.group.function arguments; \
    leave(before, CALL_##group##_##function); \
    return answered(&asked, CALL_##group##_##function, status); \
  }
/* What a failed call may not have changed. */
static heddle_status unchanged(unsigned call, heddle_status status, const void *before, const void *out, size_t bytes) {
  if (status == HEDDLE_OK || out == NULL || memcmp(before, out, bytes) == 0) return status;
  kit_fault_is(real.k, KIT_FAULT_ANSWER, call, 1);
  kit_fail(real.k, "%s failed, and its out-argument is not as if the call had not been made", kit_call_name(call));
}

#define DEFINE_OUT(group, function, parameters, arguments) \
  static heddle_status group##_##function parameters { \
    const answer asked = ask(err); \
    unsigned char out_before[sizeof *out] = {0}; \
    if (out != NULL) memcpy(out_before, out, sizeof *out); \
    unsigned before = enter(CALL_##group##_##function); \
    heddle_status status = real.group.function arguments; \
    leave(before, CALL_##group##_##function); \
    status = answered(&asked, CALL_##group##_##function, status); \
    return unchanged(CALL_##group##_##function, status, out_before, out, sizeof *out); \
  }
#define DEFINE_VOID(group, function, parameters, arguments) \
  static void group##_##function parameters { \
    unsigned before = enter(CALL_##group##_##function); \
    real.group.function arguments; \
    leave(before, CALL_##group##_##function); \
  }

STATUS_CALLS(DEFINE_STATUS, DEFINE_OUT)
VOID_CALLS(DEFINE_VOID)
ROOT_STATUS_CALLS(DEFINE_STATUS, DEFINE_OUT)
DEFINE_VOID(root, close_instance, (INSTANCE), (self))

/* ---- what does not come */

enum { OVERDUE_MS = 500 };

uint64_t kit_overdue_ms(kit *k, unsigned call, uint64_t ms) {
  const uint64_t brief = kit_patience_ms(k, OVERDUE_MS);
  return ms > brief && kit_call_in(real.page->overdue, call) ? brief : ms;
}

/* sync and idle, of which a case that gives them long expects that they end. */
static uint64_t limit_ns(unsigned call, uint64_t ns) {
  if (ns == UINT64_MAX) return ns;
  uint64_t ms = kit_overdue_ms(real.k, call, ns / 1000000);
  if (kit_call_in(real.page->called, CALL_fence_wait)) /* a stream waits for a signal, which may be another's */
    ms = kit_overdue_ms(real.k, CALL_fence_wait, kit_overdue_ms(real.k, CALL_fence_signal, ms));
  return ms * 1000000 + ns % 1000000;
}

/* Where a stream waits for a signal, that is what did not come, and not what sync or idle promise of other work. */
static heddle_status judged(unsigned call, heddle_status status, uint64_t ns) {
  if (kit_call_in(real.page->called, CALL_fence_wait)) call = CALL_fence_wait;
  if (status == HEDDLE_ETIMEOUT && ns / 1000000 >= kit_patience_ms(real.k, KIT_PATIENT_MS))
    kit_fault_is(real.k, KIT_FAULT_OVERDUE, call, 0);
  return status;
}

static heddle_status limited_sync(STREAM, uint64_t ns, ERR) {
  return judged(CALL_stream_sync, stream_sync(stream, limit_ns(CALL_stream_sync, ns), err), ns);
}

static heddle_status limited_idle(DEV, uint64_t ns, ERR) {
  return judged(CALL_device_idle, device_idle(dev, limit_ns(CALL_device_idle, ns), err), ns);
}

/* ---- functions that are missing */

KIT_NORETURN static void absent(unsigned call) {
  kit_fault_is(real.k, KIT_FAULT_ABSENT, call, 0);
  kit_fail(real.k, "%s is NULL, and the device is not inline", kit_call_name(call));
}

static heddle_status no_signal(STREAM, heddle_pfence fence, uint64_t value, ERR) {
  (void)stream, (void)fence, (void)value, (void)err;
  absent(CALL_fence_signal);
}

static heddle_status no_create(DEV, heddle_pevent **out, ERR) {
  (void)dev, (void)out, (void)err;
  absent(CALL_event_create);
}

void kit_calls_stand_in(kit *k) {
  if (kit_inline(k)) return;
  if (k->t.fence.signal == NULL) k->t.fence.signal = no_signal;
  if (k->t.event.create == NULL) k->t.event.create = no_create;
}

void kit_calls_watch(kit *k) {
  kit_tables *t = &k->t;
  real = (struct real){.root = k->root,
                       .device = t->device,
                       .memory = t->memory,
                       .copy = t->copy,
                       .stream = t->stream,
                       .event = t->event,
                       .fence = t->fence,
                       .op = t->op,
                       .layout = t->layout,
                       .module = t->module,
                       .capture = t->capture,
                       .timing = t->timing,
                       .external = t->external,
                       .page = k->side->page,
                       .k = k};
#define PUT(group, function, parameters, arguments) \
  if (t->group.function != NULL) t->group.function = group##_##function;
#define PUT_ROOT(group, function, parameters, arguments) \
  if (k->root.function != NULL) k->root.function = group##_##function;
  STATUS_CALLS(PUT, PUT)
  VOID_CALLS(PUT)
  ROOT_STATUS_CALLS(PUT_ROOT, PUT_ROOT)
  PUT_ROOT(root, close_instance, , )
  if (t->stream.sync != NULL) t->stream.sync = limited_sync;
  if (t->device.idle != NULL) t->device.idle = limited_idle;
}
