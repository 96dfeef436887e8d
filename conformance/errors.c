/* conformance/errors.c: the group "errors": what a failed call leaves behind: words, untouched out-arguments, a device
 * that works, and no memory; and calls during which the host's memory is out. */
#include <stdio.h>
#include <string.h>

#include "conformance/kit_side.h"
#include "conformance/process_left.h"
#include "conformance/relu.h"

/* ---- calls that cannot work */

typedef struct attempt {
  heddle_error *err; /* NULL: the call gets none */
  void *out;         /* a pointer to itself: where the call's out-argument is */
  heddle_status status;
  bool absent; /* the plugin lacks the function */
} attempt;

static void describe_beyond(kit *k, attempt *a) {
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  a->status = k->root.device_describe(k->instance, k->n_devices, &desc, a->err);
}

static void open_beyond(kit *k, attempt *a) {
  heddle_pdevice_options options = {.struct_size = sizeof options};
  a->status = k->t.device.open(k->instance, k->n_devices, &options, (heddle_pdevice **)&a->out, a->err);
}

static void query_key(kit *k, attempt *a) {
  int64_t n = 4711;
  a->status = k->t.device.query(k->dev, 4711, &n, a->err);
  if (n != 4711) a->out = NULL;
}

static void alloc_huge(kit *k, attempt *a) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = UINT64_C(1) << 60};
  desc.align = 1;
  a->status = k->t.memory.alloc(k->dev, &desc, (heddle_pbuffer **)&a->out, a->err);
}

static void alloc_endless(kit *k, attempt *a) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = UINT64_MAX - 7};
  desc.align = 1;
  a->status = k->t.memory.alloc(k->dev, &desc, (heddle_pbuffer **)&a->out, a->err);
}

static void alloc_kind(kit *k, attempt *a) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = 99, .bytes = 64, .align = 1};
  a->status = k->t.memory.alloc(k->dev, &desc, (heddle_pbuffer **)&a->out, a->err);
}

static void load_format(kit *k, attempt *a) {
  a->absent = !k->t.has_module;
  if (a->absent) return;
  a->status = k->t.module.load(k->dev, "no_such_format", "x", 1, (heddle_pmodule **)&a->out, a->err);
}

static heddle_status no_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)offer;
  (void)err;
  *(bool *)sink = true;
  return HEDDLE_OK;
}

/* op.query about a region of one node, of four float32 numbers; *offered: whether it made an offer. */
static heddle_status query_one(kit *k, attempt *a, uint32_t index, const char *op, uint32_t opset, uint32_t since,
                               bool *offered) {
  static const int64_t shape[1] = {4};
  const heddle_pvalue value = {
      .struct_size = sizeof value, .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1}, .shape = shape, .ndim = 1};
  const heddle_pvalue values[2] = {value, value};
  static const int32_t in = 0, out = 1;
  const heddle_pnode node = {.struct_size = sizeof node,
                             .opset = opset,
                             .domain = "",
                             .op = op,
                             .name = "the_node",
                             .inputs = &in,
                             .outputs = &out,
                             .n_inputs = 1,
                             .n_outputs = 1,
                             .since_version = since};
  const heddle_pregion region = {.struct_size = sizeof region,
                                 .nodes = {&node, 1, sizeof node},
                                 .values = {values, 2, sizeof values[0]},
                                 .inputs = &in,
                                 .outputs = &out,
                                 .n_inputs = 1,
                                 .n_outputs = 1};
  return k->t.op.query(k->instance, index, &region, no_offer, offered, a->err);
}

static void query_operator(kit *k, attempt *a) {
  bool offered = false;
  a->absent = !k->t.has_op;
  if (a->absent) return;
  a->status = query_one(k, a, k->index, "NoSuchOperator", 18, 0, &offered);
  if (offered) kit_fail(k, "op.query made an offer for an operator that there is not");
}

/* Functions beside these that take an index; HEDDLE_OK where the plugin lacks the function. */
static heddle_status beyond_op(kit *k, attempt *a) {
  bool offered = false;
  return query_one(k, a, k->n_devices, "Relu", 14, 14, &offered);
}

/* A plugin that has one device may take the index of its pure functions for that of the device. */
static void query_beyond(kit *k, attempt *a) {
  if (k->t.has_op && k->t.op.query != NULL && k->n_devices > 1) a->status = beyond_op(k, a);
  else a->absent = true;
}

static heddle_status no_name(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                             const char *dtypes, heddle_error *err) {
  (void)sink, (void)domain, (void)op, (void)first, (void)last, (void)dtypes, (void)err;
  return HEDDLE_OK;
}

static void list_beyond(kit *k, attempt *a) {
  if (k->t.has_op && k->t.op.list != NULL && k->n_devices > 1)
    a->status = k->t.op.list(k->instance, k->n_devices, no_name, NULL, a->err);
  else a->absent = true;
}

static void peer_beyond(kit *k, attempt *a) {
  if (k->t.copy.can_peer != NULL) a->status = k->t.copy.can_peer(k->instance, k->n_devices, k->index, a->err);
  else a->absent = true;
}

static void layout_beyond(kit *k, attempt *a) {
  char name[64];
  if (k->t.has_layout && k->t.layout.describe != NULL && k->n_devices > 1)
    a->status = k->t.layout.describe(k->instance, k->n_devices, 1, name, sizeof name, a->err);
  else a->absent = true;
}

typedef struct call {
  const char *what;
  void (*run)(kit *k, attempt *a);
  heddle_status one, other; /* HEDDLE_OK: any failure will do */
} call;

static const call calls[] = {
    {"device_describe of an index that there is not", describe_beyond, HEDDLE_OK, HEDDLE_OK},
    {"device.open of an index that there is not", open_beyond, HEDDLE_OK, HEDDLE_OK},
    {"device.query of an unknown key", query_key, HEDDLE_EUNSUPPORTED, HEDDLE_EUNSUPPORTED},
    {"memory.alloc of 2^60 bytes", alloc_huge, HEDDLE_ENOMEM, HEDDLE_ELIMIT},
    {"memory.alloc of 2^64 - 8 bytes", alloc_endless, HEDDLE_ENOMEM, HEDDLE_ELIMIT},
    {"memory.alloc of a kind that there is not", alloc_kind, HEDDLE_OK, HEDDLE_OK},
    {"module.load of an unknown format", load_format, HEDDLE_OK, HEDDLE_OK},
    {"op.query of an unknown operator", query_operator, HEDDLE_EUNSUPPORTED, HEDDLE_EUNSUPPORTED},
    {"op.query of a device that there is not", query_beyond, HEDDLE_OK, HEDDLE_OK},
    {"op.list of a device that there is not", list_beyond, HEDDLE_OK, HEDDLE_OK},
    {"copy.can_peer of a device that there is not", peer_beyond, HEDDLE_OK, HEDDLE_OK},
    {"layout.describe of a device that there is not", layout_beyond, HEDDLE_OK, HEDDLE_OK}};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* HEDDLE_OK where the plugin does not have the function. */
static attempt try_call(kit *k, const call *c, bool with_err) {
  attempt a = {.err = with_err ? &k->err : NULL, .status = HEDDLE_OK};
  a.out = &a;
  k->err = (heddle_error){.status = -1};
  memset(k->err.text, 'x', sizeof k->err.text); /* a text that is not written is not terminated */
  c->run(k, &a);
  const bool absent = a.absent;
  if (a.status == HEDDLE_OK && !absent) kit_fail(k, "%s gave HEDDLE_OK", c->what);
  if (a.status != HEDDLE_OK && a.out == NULL)
    kit_fail(k, "%s failed, and its out-argument is not as if the call had not been made", c->what);
  return a;
}

static heddle_status make_buffer(kit *k, void **made, heddle_error *err);

static void words(kit *k) {
  void *made = NULL;
  bool no_memory = make_buffer(k, &made, &k->err) ==
                   HEDDLE_EUNSUPPORTED; /* a device that refuses everything may refuse this so too */
  k->t.memory.free(k->dev, made);
  for (int i = 0; i < CALLS; i++) {
    attempt a = try_call(k, &calls[i], true);
    if (a.status == HEDDLE_OK) continue;
    heddle_status one = calls[i].one, other = calls[i].other;
    if (no_memory && one == HEDDLE_ENOMEM) one = other = HEDDLE_EUNSUPPORTED;
    kit_fails(k, a.status, one != HEDDLE_OK ? one : a.status, one != HEDDLE_OK ? other : a.status, calls[i].what);
  }
}

static void null_err(kit *k) {
  for (int i = 0; i < CALLS; i++) (void)try_call(k, &calls[i], false);
}

static void untouched(kit *k) {
  for (int i = 0; i < CALLS; i++) {
    attempt a = {.err = &k->err, .status = HEDDLE_OK};
    int mark;
    a.out = &mark;
    calls[i].run(k, &a);
    if (a.status != HEDDLE_OK && a.out != &mark)
      kit_fail(k, "%s failed, and its out-argument is not as if the call had not been made", calls[i].what);
  }
}

static void usable(kit *k) {
  heddle_pstream *stream = NULL;
  heddle_status s = k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &k->err);
  if (s == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device makes no streams: %.500s", k->err.text);
  kit_ok(k, s, "stream.create");
  heddle_pbuffer *buffer = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 256);
  unsigned char bytes[256], back[256];
  for (int i = 0; i < CALLS; i++) {
    (void)try_call(k, &calls[i], true);
    kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after a call that failed");
    kit_pattern(bytes, sizeof bytes, (uint32_t)i);
    kit_put(k, stream, buffer, 0, bytes, sizeof bytes);
    kit_get(k, stream, buffer, 0, back, sizeof back);
    if (kit_compare(back, sizeof back, (uint32_t)i) != sizeof back)
      kit_fail(k, "after %s had failed, bytes that were written to a buffer did not come back", calls[i].what);
  }
  kit_free(k, k->dev, buffer);
  k->t.stream.close(stream);
}

static void nothing_left(kit *k) {
  for (int i = 0; i < CALLS; i++) (void)try_call(k, &calls[i], true); /* what a plugin keeps from the first time on */
  uint64_t before = kit_host_blocks(k);
  for (int round = 0; round < 4; round++)
    for (int i = 0; i < CALLS; i++) (void)try_call(k, &calls[i], true);
  if (kit_host_blocks(k) > before)
    kit_fail(k, "calls that failed left %llu blocks from host.alloc behind",
             (unsigned long long)(kit_host_blocks(k) - before));
}

/* ---- the host's memory is out */

enum { MOST_FAILURES = 300, SWEEP_MS = 4000 };

/* A call that makes something, and the one that frees it; err may be NULL. */
typedef heddle_status (*step_fn)(kit *k, void **made, heddle_error *err);
typedef void (*undo_fn)(kit *k, void *made);

/* Makes the n-th allocation of a step fail, for every n until the step needs fewer; each twice, the second time without an
 * err. */
static void sweep(kit *k, const char *what, step_fn step, undo_fn undo) {
  void *made = NULL;
  heddle_status s = step(k, &made, &k->err); /* once as it is: what is kept from the first time on does not count */
  if (s == HEDDLE_EUNSUPPORTED) kit_skip(k, "%s: %.500s", what, k->err.text);
  kit_ok(k, s, what);
  undo(k, made);
  uint64_t before = kit_host_blocks(k), end = kit_now_ms() + SWEEP_MS;
  for (uint64_t n = 2; n / 2 <= MOST_FAILURES && kit_now_ms() < end; n++) {
    const bool with_err = n % 2 == 0;
    char words[160];
    snprintf(words, sizeof words, "%s, with host.alloc number %llu failing%s", what, (unsigned long long)(n / 2),
             with_err ? "" : ", without a heddle_error");
    kit_step(k, words);
    made = NULL;
    kit_host_fail_alloc(k, n / 2);
    s = step(k, &made, with_err ? &k->err : NULL);
    bool failed = kit_host_failed(k);
    kit_host_fail_alloc(k, 0);
    if (s == HEDDLE_OK) undo(k, made);
    else if (!failed) kit_fail(k, "%s worked before, and then gave %s", words, kit_status_name(s));
    else if (with_err) kit_fails(k, s, HEDDLE_ENOMEM, HEDDLE_ENOMEM, words);
    else if (s != HEDDLE_ENOMEM) kit_fail(k, "%s gave %s", words, kit_status_name(s));
    uint64_t left = kit_host_blocks(k);
    if (left > before)
      kit_fail(k, "%s: %llu blocks from host.alloc were left behind", words, (unsigned long long)(left - before));
    if (!failed) return;
  }
}

static heddle_status open_instance(kit *k, void **made, heddle_error *err) {
  return k->root.open_instance(&k->host, (heddle_pinstance **)made, err);
}

static void close_instance(kit *k, void *made) {
  k->root.close_instance(made);
}

static heddle_status open_device(kit *k, void **made, heddle_error *err) {
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 9};
  return k->t.device.open(k->instance, k->index, &options, (heddle_pdevice **)made, err);
}

static void close_device(kit *k, void *made) {
  k->t.device.close(made);
}

static heddle_status make_buffer(kit *k, void **made, heddle_error *err) {
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = 4096, .align = 1};
  return k->t.memory.alloc(k->dev, &desc, (heddle_pbuffer **)made, err);
}

static void free_buffer(kit *k, void *made) {
  k->t.memory.free(k->dev, made);
}

static heddle_status create_stream(kit *k, void **made, heddle_error *err) {
  return k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, (heddle_pstream **)made, err);
}

static void close_stream(kit *k, void *made) {
  k->t.stream.close(made);
}

static heddle_status create_event(kit *k, void **made, heddle_error *err) {
  return k->t.event.create(k->dev, (heddle_pevent **)made, err);
}

static void free_event(kit *k, void *made) {
  k->t.event.free(made);
}

static void no_memory_instance(kit *k) {
  sweep(k, "open_instance", open_instance, close_instance);
}

static void no_memory_device(kit *k) {
  sweep(k, "device.open", open_device, close_device);
}

static void no_memory_alloc(kit *k) {
  sweep(k, "memory.alloc", make_buffer, free_buffer);
}

static void no_memory_stream(kit *k) {
  sweep(k, "stream.create", create_stream, close_stream);
}

static void no_memory_event(kit *k) {
  if (!k->t.has_event) kit_skip(k, "the plugin has no events");
  sweep(k, "event.create", create_event, free_event);
}

/* What the cases of views and launches need meanwhile: one case a process. */
static struct using {
  heddle_pbuffer *x, *y;
  heddle_pstream *stream;
  kit_relu relu;
}
using;

static heddle_status make_view(kit *k, void **made, heddle_error *err) {
  return k->t.memory.view(k->dev, using.x, 0, 64, (heddle_pbuffer **)made, err);
}

static void no_memory_view(kit *k) {
  if ((k->desc.caps & HEDDLE_CAP_VIEWS) == 0 || k->t.memory.view == NULL) kit_skip(k, "the device has no views");
  using.x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  sweep(k, "memory.view", make_view, free_buffer);
  kit_free(k, k->dev, using.x);
}

static heddle_status make_op(kit *k, void **made, heddle_error *err) {
  return kit_relu_prepare(k, k->dev, &using.relu, (heddle_pop **)made, err);
}

static void free_op(kit *k, void *made) {
  k->t.op.op_free(made);
}

static void no_memory_prepare(kit *k) {
  using.relu = kit_relu_new(k, k->dev, k->index);
  sweep(k, "op.prepare of Relu", make_op, free_op);
  kit_relu_free(k, &using.relu);
}

static heddle_status make_launch(kit *k, void **made, heddle_error *err) {
  return kit_relu_try_bind(k, &using.relu, using.stream, using.x, using.y, (heddle_plaunch **)made, err);
}

static void free_launch(kit *k, void *made) {
  k->t.op.launch_free(made);
}

static void no_memory_bind(kit *k) {
  using.relu = kit_relu_new(k, k->dev, k->index);
  using.stream = kit_stream(k, k->dev);
  using.x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  using.y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  sweep(k, "op.bind of Relu", make_launch, free_launch);
  kit_free(k, k->dev, using.x);
  kit_free(k, k->dev, using.y);
  k->t.stream.close(using.stream);
  kit_relu_free(k, &using.relu);
}

/* ---- the log */

static void log_lines(kit *k) {
  process_work(k);
  kit_close_all(k);
  if (k->side->log_fault[0] != '\0') kit_fail(k, "%s", k->side->log_fault);
}

KIT_GROUP(kit_errors, "errors",
          {"errors/words",
           "on failure the text says what was asked, in one line of UTF-8, and status is the one returned",
           KIT_STAGE_DEVICE, KIT_REFUSES, 0, words, NULL},
          {"errors/null_err", "err may be NULL", KIT_STAGE_DEVICE, KIT_REFUSES, 0, null_err, NULL},
          {"errors/outs", "on failure the out-arguments are as if the call had not been made", KIT_STAGE_DEVICE,
           KIT_REFUSES, 0, untouched, NULL},
          {"errors/usable", "every failure but a lost device leaves the device usable", KIT_STAGE_DEVICE, KIT_REFUSES,
           0, usable, NULL},
          {"errors/nothing_left", "a call that failed leaves nothing behind", KIT_STAGE_DEVICE, KIT_REFUSES, 0,
           nothing_left, NULL},
          {"errors/no_memory_instance",
           "open_instance gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing", KIT_STAGE_ENTRY,
           KIT_OPENS | KIT_REFUSES, 60, no_memory_instance, NULL},
          {"errors/no_memory_device", "device.open gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_INSTANCE, KIT_OPENS | KIT_REFUSES, 60, no_memory_device, NULL},
          {"errors/no_memory_alloc", "memory.alloc gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_DEVICE, KIT_REFUSES, 30, no_memory_alloc, NULL},
          {"errors/no_memory_stream", "stream.create gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_DEVICE, KIT_REFUSES, 30, no_memory_stream, NULL},
          {"errors/no_memory_event", "event.create gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_DEVICE, KIT_REFUSES, 30, no_memory_event, NULL},
          {"errors/no_memory_view", "memory.view gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_DEVICE, 0, 30, no_memory_view, NULL},
          {"errors/no_memory_prepare", "op.prepare gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_DEVICE, 0, 60, no_memory_prepare, NULL},
          {"errors/no_memory_bind", "op.bind gives HEDDLE_ENOMEM when host.alloc gives NULL, and leaks nothing",
           KIT_STAGE_DEVICE, 0, 30, no_memory_bind, NULL},
          {"errors/log", "a line to host.log has a level, a word and one line of UTF-8", KIT_STAGE_DEVICE, KIT_REFUSES,
           0, log_lines, NULL});
