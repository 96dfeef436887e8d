/* What a server may send to the plugin remote: its description, then a frame for each that the plugin sends. Nothing may crash,
 * leak, wait for long, or write where the plugin did not ask for bytes. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/remote/remote.h"

/* The bytes are released frame by frame: the n-th when the plugin has sent n. */
static struct {
  const uint8_t *data;
  size_t size, at, end; /* end: of the frames that are released */
  int sent;
  pthread_mutex_t lock;
} in = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void release(void) {
  if (in.size - in.end < WIRE_HEAD) {
    in.end = in.size;
    return;
  }
  const wire_head head = wire_head_take(in.data + in.end);
  const size_t left = in.size - in.end - WIRE_HEAD;
  in.end += WIRE_HEAD + (head.bytes < left ? (size_t)head.bytes : left);
}

static int64_t put(transport *t, const void *data, size_t bytes) {
  (void)t, (void)data;
  pthread_mutex_lock(&in.lock);
  release();
  pthread_mutex_unlock(&in.lock);
  return (int64_t)bytes;
}

static int64_t get(transport *t, void *data, size_t bytes) {
  (void)t;
  pthread_mutex_lock(&in.lock);
  const size_t n = bytes < in.end - in.at ? bytes : in.end - in.at;
  const bool is_over = in.at == in.size;
  if (n > 0) memcpy(data, in.data + in.at, n);
  in.at += n;
  pthread_mutex_unlock(&in.lock);
  return is_over ? -1 : (int64_t)n;
}

static void end(transport *t) {
  (void)t;
}

static const transport_carrier carrier = {put, get, end};

/* In the place of plugins/remote/connect.c. What is waited for is always ready, so that nothing sleeps. */
heddle_status remote_connect(heddle_pinstance *self, const char *address, transport *t, uint64_t *child,
                             heddle_error *err) {
  (void)address;
  *child = 0;
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0 || !transport_init(t, fd, fd, self->connect_ms)) return p_fail(err, HEDDLE_ENODEV, 0, "no file");
  t->carrier = &carrier;
  return HEDDLE_OK;
}

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align) {
  void *p = NULL;
  (void)ctx;
  if (align < sizeof(void *)) align = sizeof(void *);
  return bytes <= 1 << 28 && posix_memalign(&p, align, bytes > 0 ? bytes : 1) == 0 ? p : NULL;
}

static void host_free(void *ctx, void *p) {
  (void)ctx;
  free(p);
}

static int64_t host_config(void *ctx, const char *key, char *buf, uint64_t bytes) {
  static const char *const values[][2] = {
      {"servers", "fuzz"}, {"silence_ms", "500"}, {"connect_ms", "100"}, {"request_ms", "200"}};
  (void)ctx;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
    if (strcmp(key, values[i][0]) == 0) return snprintf(buf, bytes, "%s", values[i][1]);
  return -1;
}

static void host_log(void *ctx, int32_t level, const char *component, const char *text) {
  (void)ctx, (void)level, (void)component, (void)text;
}

static void host_signal(void *ctx, heddle_pfence fence, uint64_t value) {
  (void)ctx, (void)fence, (void)value;
}

static void host_fail(void *ctx, heddle_pfence fence, heddle_status status, const char *text) {
  (void)ctx, (void)fence, (void)status, (void)text;
}

static void host_fault(void *ctx, uint64_t cookie, int32_t code, const char *text) {
  (void)ctx, (void)cookie, (void)code, (void)text;
}

static const heddle_host host = {.struct_size = sizeof host,
                                 .abi_major = HEDDLE_ABI_MAJOR,
                                 .abi_minor = HEDDLE_ABI_MINOR,
                                 .build = "fuzz",
                                 .log = host_log,
                                 .alloc = host_alloc,
                                 .free = host_free,
                                 .config = host_config,
                                 .fence_signal = host_signal,
                                 .fence_fail = host_fail,
                                 .device_fault = host_fault};

static heddle_status take_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)sink, (void)err;
  return offer->n_in_place > 0 && offer->in_place == NULL ? HEDDLE_EFAILED : HEDDLE_OK;
}

static void ask(const heddle_plugin *p, heddle_pinstance *self) {
  static const int64_t shape[1] = {4};
  static const int32_t first[1] = {0}, second[1] = {1};
  const heddle_pvalue values[2] = {
      {.struct_size = sizeof values[0], .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1}, .shape = shape, .ndim = 1},
      {.struct_size = sizeof values[0], .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1}, .shape = shape, .ndim = 1}};
  const heddle_pnode node = {.struct_size = sizeof node,
                             .opset = 17,
                             .domain = "",
                             .op = "Relu",
                             .name = "n",
                             .inputs = first,
                             .outputs = second,
                             .n_inputs = 1,
                             .n_outputs = 1};
  const heddle_pregion region = {.struct_size = sizeof region,
                                 .nodes = {&node, 1, sizeof node},
                                 .values = {values, 2, sizeof values[0]},
                                 .inputs = first,
                                 .outputs = second,
                                 .n_inputs = 1,
                                 .n_outputs = 1};
  heddle_error err;
  (void)p->op->query(self, 0, &region, take_offer, NULL, &err);
}

static void use(const heddle_plugin *p, heddle_pdevice *dev) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = 64, .align = 64};
  heddle_pbuffer *buffer = NULL;
  heddle_pstream *stream = NULL;
  heddle_error err;
  char bytes[64] = "";
  if (p->memory->alloc(dev, &desc, &buffer, &err) == HEDDLE_OK &&
      p->stream->create(dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &err) == HEDDLE_OK) {
    (void)p->copy->write(stream, buffer, 0, bytes, sizeof bytes, &err);
    (void)p->copy->read(stream, bytes, buffer, 0, sizeof bytes, &err);
    (void)p->stream->sync(stream, 100000000, &err);
  }
  p->stream->close(stream);
  p->memory->free(dev, buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const heddle_pdevice_options options = {.struct_size = sizeof options};
  heddle_error err;
  heddle_pinstance *self = NULL;
  heddle_pdevice *dev = NULL;
  in.data = data;
  in.size = size;
  in.at = in.end = 0;
  const heddle_plugin *p = heddle_plugin_entry(&host, &err);
  if (p->open_instance(&host, &self, &err) != HEDDLE_OK) return 0;
  if (p->device->open(self, 0, &options, &dev, &err) == HEDDLE_OK) {
    use(p, dev);
    ask(p, self);
    p->device->close(dev);
  }
  p->close_instance(self);
  return 0;
}
