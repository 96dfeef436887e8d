/* A host in one file, built against some minor of plugin.h, that takes a plugin built against another through its paces,
 * with a canary behind every struct that the plugin may write to or read past. harness PLUGIN [next]: "next" says that
 * the plugin was built from the header with the appended members. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/plugin.h"

#define CANARY 0xA5

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, err.text); \
      return 1; \
    } \
  } while (0)

static heddle_error err;
static heddle_pfence signalled;
static uint64_t offers, offer_next;

static void host_log(void *ctx, int32_t level, const char *component, const char *text) {
  (void)ctx, (void)level, (void)component, (void)text;
}
static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx, (void)align;
  return malloc(bytes > 0 ? bytes : 1); /* exact, so that a sanitizer sees one byte too many */
}
static void host_free(void *ctx, void *p) {
  (void)ctx;
  free(p);
}
static int64_t host_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  (void)ctx, (void)key, (void)buf, (void)bytes;
  return -1;
}
static void host_fence_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx;
  signalled = fence + value;
}
#ifdef HEDDLE_NEXT
static heddle_status host_next(uint64_t *out) {
  *out = 11;
  return HEDDLE_OK;
}
#endif

static int intact(const unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != CANARY) return 0;
  return 1;
}

/* What core/table.c does: their table over a zeroed one of ours. */
static void take(void *dst, size_t bytes, const void *src, size_t width) {
  uint64_t have = 0;
  memset(dst, 0, bytes);
  if (src == NULL) return;
  memcpy(&have, src, width);
  memcpy(dst, src, have < bytes ? (size_t)have : bytes);
}

static heddle_status see(void *sink, const heddle_poffer *offer, heddle_error *e) {
  heddle_poffer ours;
  (void)sink, (void)e;
  take(&ours, sizeof ours, offer, sizeof offer->struct_size);
  offers++;
#ifdef HEDDLE_NEXT
  offer_next = ours.next_1_1;
#endif
  return HEDDLE_OK;
}

int main(int argc, char **argv) {
  int theirs_next = argc > 2 && strcmp(argv[2], "next") == 0;
  static struct {
    heddle_host table;
    unsigned char canary[64];
  } host;
  static struct {
    heddle_pdevice_desc d;
    unsigned char canary[64];
  } desc;
  memset(host.canary, CANARY, sizeof host.canary);
  memset(desc.canary, CANARY, sizeof desc.canary);
  host.table.struct_size = sizeof host.table;
  host.table.abi_major = HEDDLE_ABI_MAJOR;
  host.table.abi_minor = HEDDLE_ABI_MINOR;
  host.table.log = host_log;
  host.table.alloc = host_alloc;
  host.table.free = host_free;
  host.table.config = host_config;
  host.table.fence_signal = host_fence_signal;
#ifdef HEDDLE_NEXT
  host.table.next_1_1 = host_next;
#endif

  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "harness PLUGIN [next]");
    return 2;
  }
  heddle_plugin_entry_fn entry;
  void *symbol = dlsym(library, "heddle_plugin_entry");
  memcpy(&entry, &symbol, sizeof entry);
  const heddle_plugin *theirs = entry(&host.table, &err);
  CHECK(theirs != NULL);
  heddle_plugin root;
  take(&root, sizeof root, theirs, sizeof theirs->struct_size);
  CHECK(root.abi_major == HEDDLE_ABI_MAJOR && root.open_instance != NULL && root.op != NULL);
  heddle_device_table device;
  heddle_memory_table memory;
  heddle_copy_table copy;
  heddle_stream_table stream;
  heddle_fence_table fence;
  heddle_op_table op;
  take(&device, sizeof device, root.device, 8);
  take(&memory, sizeof memory, root.memory, 8);
  take(&copy, sizeof copy, root.copy, 8);
  take(&stream, sizeof stream, root.stream, 8);
  take(&fence, sizeof fence, root.fence, 8);
  take(&op, sizeof op, root.op, 8);
#ifdef HEDDLE_NEXT
  uint64_t answer = 0;
  CHECK((root.next_1_1 != NULL) == theirs_next && (op.next_1_1 != NULL) == theirs_next);
  CHECK(!theirs_next || (op.next_1_1(&answer) == HEDDLE_OK && answer == 11));
#endif

  heddle_pinstance *self = NULL;
  CHECK(root.open_instance(&host.table, &self, &err) == HEDDLE_OK);
  desc.d.struct_size = sizeof desc.d;
  CHECK(root.device_describe(self, 1, &desc.d, &err) == HEDDLE_OK);
  CHECK(strcmp(desc.d.name, "Probe") == 0 && desc.d.alignment == 64 && desc.d.max_streams == 1);
#ifdef HEDDLE_NEXT
  CHECK(desc.d.next_1_1 == (theirs_next ? 11u : 0u));
#endif
  CHECK(intact(desc.canary, sizeof desc.canary));

  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 7};
  heddle_pdevice *dev = NULL;
  heddle_pstream *s = NULL;
  heddle_pbuffer *a = NULL, *b = NULL;
  heddle_pmemory_desc want = {.struct_size = sizeof want, .bytes = 64, .align = 64};
  CHECK(device.open(self, 1, &options, &dev, &err) == HEDDLE_OK);
  CHECK(stream.create(dev, 0, 0, &s, &err) == HEDDLE_OK);
  CHECK(memory.alloc(dev, &want, &a, &err) == HEDDLE_OK && memory.alloc(dev, &want, &b, &err) == HEDDLE_OK);

  static const int64_t shape[] = {16};
  static const int32_t zero = 0, one = 1;
  heddle_pvalue values[2] = {{.struct_size = sizeof values[0], .dtype = {2, 32, 1}, .shape = shape, .ndim = 1},
                             {.struct_size = sizeof values[0], .dtype = {2, 32, 1}, .shape = shape, .ndim = 1}};
  heddle_pnode node = {.struct_size = sizeof node,
                       .opset = 13,
                       .domain = "",
                       .op = "Identity",
                       .name = "n",
                       .inputs = &zero,
                       .outputs = &one,
                       .n_inputs = 1,
                       .n_outputs = 1};
  heddle_pregion region = {.struct_size = sizeof region,
                           .nodes = {&node, 1, sizeof node},
                           .values = {values, 2, sizeof values[0]},
                           .inputs = &zero,
                           .outputs = &one,
                           .n_inputs = 1,
                           .n_outputs = 1};
  heddle_pop *prepared = NULL;
  heddle_plaunch *launch = NULL;
  heddle_pslice in = {a, 0, 64}, out = {b, 0, 64};
  heddle_pbind bind = {.struct_size = sizeof bind, .inputs = &in, .outputs = &out, .n_inputs = 1, .n_outputs = 1};
  CHECK(op.query(self, 1, &region, see, NULL, &err) == HEDDLE_OK && offers == 1);
#ifdef HEDDLE_NEXT
  CHECK(offer_next == (theirs_next ? 11u : 0u));
#endif
  CHECK(op.prepare(dev, &region, 0, &prepared, &err) == HEDDLE_OK);
  CHECK(op.bind(prepared, s, &bind, &launch, &err) == HEDDLE_OK);
  float x[16] = {1, 2, 3}, y[16] = {0};
  CHECK(copy.write(s, a, 0, x, sizeof x, &err) == HEDDLE_OK && op.run(launch, &err) == HEDDLE_OK);
  CHECK(copy.read(s, y, b, 0, sizeof y, &err) == HEDDLE_OK && memcmp(x, y, sizeof x) == 0);
  CHECK(fence.signal(s, 40, 2, &err) == HEDDLE_OK && signalled == 42);
  op.launch_free(launch);
  op.op_free(prepared);
  memory.free(dev, a);
  memory.free(dev, b);
  stream.close(s);
  device.close(dev);
  root.close_instance(self);
  CHECK(intact(host.canary, sizeof host.canary));
  (void)theirs_next, (void)offer_next;
  puts("ok");
  return 0;
}
