// A plugin in C++17, to show that heddle/plugin.h asks for nothing but C's types and calls. Its device is inline: it
// computes a few elementwise operators on the calling thread. What C++ adds: tables are constant expressions, objects
// are made in the host's memory, and no exception leaves a function, since each is noexcept and throws nothing.
#include <heddle/plugin.h>

#include <plugins/common/pbuild.h>
#include <plugins/common/perror.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

struct Operator {
  const char *name;
  uint32_t n_inputs; // at most 2
  float (*compute)(float a, float b);
};

// A region of one node: its operator, its elements, and which input of the region each operand is (x + x has one).
struct Found {
  const Operator *op;
  uint64_t count;
  uint32_t slot[2];
};

// The handles, which plugin.h only declares.
struct heddle_pinstance {
  const heddle_host *host;
};
struct heddle_pdevice {
  const heddle_host *host;
  std::atomic<int64_t> live[4]{}; // by HEDDLE_QUERY_LIVE_*
};
struct heddle_pbuffer {
  char *data, *owned; // owned: nullptr in an import
  uint64_t bytes;
};
struct heddle_pstream {
  heddle_pdevice *dev;
};
struct heddle_pop {
  heddle_pdevice *dev;
  Found found;
};
struct heddle_plaunch {
  heddle_pdevice *dev;
  Found found;
  const float *in[2];
  float *out;
};

namespace {

constexpr Operator operators[] = {
    {"Abs", 1, [](float a, float) { return std::fabs(a); }},
    {"Add", 2, [](float a, float b) { return a + b; }},
    {"Max", 2, [](float a, float b) { return a > b || std::isnan(a) ? a : b; }},
    {"Mul", 2, [](float a, float b) { return a * b; }},
    {"Relu", 1, [](float a, float) { return a < 0 ? 0.0f : a; }},
    {"Sub", 2, [](float a, float b) { return a - b; }},
};

// Makes an object in the host's memory; nullptr where there is none.
template <typename T, typename... Args> T *make(const heddle_host *host, Args... args) noexcept {
  void *memory = host->alloc(host->ctx, sizeof(T), alignof(T));
  return memory != nullptr ? new (memory) T{args...} : nullptr;
}

template <typename T> void destroy(const heddle_host *host, T *object) noexcept {
  object->~T();
  host->free(host->ctx, object);
}

// The same for what belongs to a device, which counts it; release is the table's function that takes it back.
template <typename T> heddle_status give(heddle_pdevice *dev, const T &value, T **out, heddle_error *err) noexcept {
  T *object = make<T>(dev->host, value);
  if (object == nullptr) return p_fail(err, HEDDLE_ENOMEM, 0, "cpp:0: no memory for an object of the device");
  dev->live[HEDDLE_QUERY_LIVE_OBJECTS] += 1;
  return *out = object, HEDDLE_OK;
}

template <typename T> void release(T *object) noexcept {
  if (object == nullptr) return;
  object->dev->live[HEDDLE_QUERY_LIVE_OBJECTS] -= 1;
  destroy(object->dev->host, object);
}

template <typename T> void close(T *object) noexcept {
  if (object != nullptr) destroy(object->host, object);
}

heddle_status device_open(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                          heddle_pdevice **out, heddle_error *err) noexcept {
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpp:%u: there is one device, cpp:0", index);
  if (HEDDLE_HAS(heddle_pdevice_options, options, settings) && options->settings.count > 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "cpp:0: there is no setting '%.100s' of one device",
                  static_cast<const heddle_pkeyvalue *>(options->settings.data)->key);
  heddle_pdevice *dev = make<heddle_pdevice>(self->host, self->host);
  if (dev == nullptr) return p_fail(err, HEDDLE_ENOMEM, 0, "cpp:0: no memory for a device");
  return *out = dev, HEDDLE_OK;
}

heddle_status device_query(heddle_pdevice *dev, uint32_t key, int64_t *out, heddle_error *err) noexcept {
  if (key < HEDDLE_QUERY_LIVE_BUFFERS || key > HEDDLE_QUERY_LIVE_OBJECTS)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpp:0: query of key %u is not supported", key);
  return *out = dev->live[key], HEDDLE_OK;
}

// Nothing is ever pending, and nothing can break: health and idle, submit, sync and query of a stream.
template <typename... T> heddle_status fine(T...) noexcept {
  return HEDDLE_OK;
}

void memory_free(heddle_pdevice *dev, heddle_pbuffer *buffer) noexcept {
  if (buffer == nullptr) return;
  dev->live[HEDDLE_QUERY_LIVE_BUFFERS] -= 1;
  if (buffer->owned != nullptr) dev->live[HEDDLE_QUERY_LIVE_BYTES] -= static_cast<int64_t>(buffer->bytes);
  dev->host->free(dev->host->ctx, buffer->owned);
  destroy(dev->host, buffer);
}

// The core reaches the memory of an inline device as its own, which the plugin imports.
heddle_status memory_import(heddle_pdevice *dev, void *pointer, uint64_t bytes, heddle_pbuffer **out,
                            heddle_error *err) noexcept {
  heddle_pbuffer *buffer = make<heddle_pbuffer>(dev->host, static_cast<char *>(pointer), nullptr, bytes);
  if (buffer == nullptr) return p_fail(err, HEDDLE_ENOMEM, 0, "cpp:0: no memory for a buffer");
  dev->live[HEDDLE_QUERY_LIVE_BUFFERS] += 1;
  return *out = buffer, HEDDLE_OK;
}

heddle_status memory_alloc(heddle_pdevice *dev, const heddle_pmemory_desc *desc, heddle_pbuffer **out,
                           heddle_error *err) noexcept {
  const uint64_t align = desc->align > 64 ? desc->align : 64;
  if (desc->kind != HEDDLE_MEMORY_DEVICE || align > 4096 || (align & (align - 1)) != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpp:0: there is only memory of kind DEVICE, aligned to 4096 at most");
  auto *data = static_cast<char *>(dev->host->alloc(dev->host->ctx, desc->bytes > 0 ? desc->bytes : 1, align));
  if (data == nullptr) return p_fail(err, HEDDLE_ENOMEM, 0, "cpp:0: no memory for %llu bytes", 0ULL + desc->bytes);
  if (memory_import(dev, data, desc->bytes, out, err) != HEDDLE_OK)
    return dev->host->free(dev->host->ctx, data), HEDDLE_ENOMEM;
  (*out)->owned = data;
  dev->live[HEDDLE_QUERY_LIVE_BYTES] += static_cast<int64_t>(desc->bytes);
  return HEDDLE_OK;
}

// Bytes [offset, offset + bytes) of a buffer; nullptr with words where they are not inside.
char *range(heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, heddle_error *err) noexcept {
  if (buffer != nullptr && offset <= buffer->bytes && bytes <= buffer->bytes - offset) return buffer->data + offset;
  p_fail(err, HEDDLE_EINVAL, 0, "cpp:0: a range lies outside its buffer");
  return nullptr;
}

heddle_status move(char *to, const char *from, uint64_t bytes) noexcept {
  return to != nullptr && from != nullptr ? std::memmove(to, from, bytes), HEDDLE_OK : HEDDLE_EINVAL;
}

heddle_status copy(heddle_pstream *, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src, uint64_t src_offset,
                   uint64_t bytes, heddle_error *err) noexcept {
  return move(range(dst, dst_offset, bytes, err), range(src, src_offset, bytes, err), bytes);
}

heddle_status copy_write(heddle_pstream *, heddle_pbuffer *dst, uint64_t offset, const void *src, uint64_t bytes,
                         heddle_error *err) noexcept {
  return move(range(dst, offset, bytes, err), static_cast<const char *>(src), bytes);
}

heddle_status copy_read(heddle_pstream *, void *dst, heddle_pbuffer *src, uint64_t offset, uint64_t bytes,
                        heddle_error *err) noexcept {
  return move(static_cast<char *>(dst), range(src, offset, bytes, err), bytes);
}

heddle_status copy_fill(heddle_pstream *, heddle_pbuffer *dst, uint64_t offset, uint64_t bytes, uint32_t pattern,
                        heddle_error *err) noexcept {
  char *to = range(dst, offset, bytes, err);
  if (to == nullptr) return HEDDLE_EINVAL;
  if (offset % 4 != 0 || bytes % 4 != 0) return p_fail(err, HEDDLE_EINVAL, 0, "cpp:0: fill takes words of 4 bytes");
  for (uint64_t i = 0; i < bytes; i += 4) std::memcpy(to + i, &pattern, 4);
  return HEDDLE_OK;
}

heddle_status stream_create(heddle_pdevice *dev, uint32_t, int32_t, heddle_pstream **out, heddle_error *err) noexcept {
  return give(dev, heddle_pstream{dev}, out, err);
}

heddle_status find(const heddle_pregion *region, Found *out, heddle_error *err) noexcept {
  const auto *node = static_cast<const heddle_pnode *>(region->nodes.data);
  const auto value = [region](int32_t i) {
    const uint64_t offset = static_cast<uint64_t>(i) * region->values.stride;
    return reinterpret_cast<const heddle_pvalue *>(static_cast<const char *>(region->values.data) + offset);
  };
  *out = Found{nullptr, 1, {0, 0}};
  for (const Operator &op : operators)
    if (region->nodes.count == 1 && node->domain[0] == '\0' && std::strcmp(node->op, op.name) == 0) out->op = &op;
  bool good = out->op != nullptr && node->opset >= 13 && node->opset <= 28 && node->n_inputs == out->op->n_inputs;
  const heddle_pvalue *y = value(node->outputs[0]);
  for (uint32_t k = 0; good && k < node->n_inputs; k++) {
    const heddle_pvalue *x = value(node->inputs[k] < 0 ? node->outputs[0] : node->inputs[k]);
    good = node->inputs[k] >= 0 && x->dtype.code == HEDDLE_DTYPE_FLOAT && x->dtype.bits == 32 && x->dtype.lanes == 1 &&
           x->ndim == y->ndim;
    for (int32_t i = 0; good && i < x->ndim; i++) good = x->shape[i] == y->shape[i];
    while (good && region->inputs[out->slot[k]] != node->inputs[k]) out->slot[k]++;
  }
  if (!good)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "node '%.200s': %.100s: cpp has a few elementwise operators, of float32 and on equal shapes",
                  node->name != nullptr ? node->name : "", node->op);
  for (int32_t i = 0; i < y->ndim; i++) out->count *= static_cast<uint64_t>(y->shape[i]);
  return HEDDLE_OK;
}

heddle_status op_query(heddle_pinstance *, uint32_t, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                       heddle_error *err) noexcept {
  Found found;
  heddle_poffer answer{};
  if (find(region, &found, err) != HEDDLE_OK) return HEDDLE_EUNSUPPORTED;
  answer.struct_size = sizeof answer;
  return offer(sink, &answer, err);
}

heddle_status op_list(heddle_pinstance *, uint32_t, heddle_list_fn list, void *sink, heddle_error *err) noexcept {
  heddle_status s = HEDDLE_OK;
  for (const Operator &op : operators) s = s == HEDDLE_OK ? list(sink, "", op.name, 13, 28, "float32", err) : s;
  return s;
}

heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t, heddle_pop **out,
                         heddle_error *err) noexcept {
  Found found;
  if (find(region, &found, err) != HEDDLE_OK) return HEDDLE_EUNSUPPORTED;
  return give(dev, heddle_pop{dev, found}, out, err);
}

heddle_status op_bind(heddle_pop *op, heddle_pstream *, const heddle_pbind *operands, heddle_plaunch **out,
                      heddle_error *err) noexcept {
  const uint64_t bytes = op->found.count * sizeof(float);
  heddle_plaunch launch{op->dev, op->found, {nullptr, nullptr}, nullptr};
  bool good = true;
  const auto at = [&](const heddle_pslice &slice) {
    char *data = range(slice.buffer, slice.offset, bytes, err);
    good = good && (data != nullptr || bytes == 0);
    return reinterpret_cast<float *>(data);
  };
  for (uint32_t k = 0; k < op->found.op->n_inputs; k++) launch.in[k] = at(operands->inputs[op->found.slot[k]]);
  launch.out = at(operands->outputs[0]);
  return good ? give(op->dev, launch, out, err) : HEDDLE_EINVAL;
}

heddle_status op_run(heddle_plaunch *launch, heddle_error *) noexcept {
  const Found &found = launch->found;
  const float *a = launch->in[0], *b = found.op->n_inputs > 1 ? launch->in[1] : a;
  for (uint64_t i = 0; i < found.count; i++) launch->out[i] = found.op->compute(a[i], b[i]);
  return HEDDLE_OK;
}

heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) noexcept {
  heddle_pinstance *self = make<heddle_pinstance>(host, host);
  if (self == nullptr) return p_fail(err, HEDDLE_ENOMEM, 0, "cpp: no memory for an instance");
  return *out = self, HEDDLE_OK;
}

heddle_status device_count(heddle_pinstance *, uint32_t *out, heddle_error *) noexcept {
  return *out = 1, HEDDLE_OK;
}

heddle_status device_describe(heddle_pinstance *, uint32_t index, heddle_pdevice_desc *desc,
                              heddle_error *err) noexcept {
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpp:%u: there is one device, cpp:0", index);
  desc->type = HEDDLE_DEVICE_EXT;
  std::strcpy(desc->name, "elementwise operators in C++");
  desc->pci_domain = desc->pci_bus = desc->pci_device = desc->pci_function = UINT32_MAX;
  std::strcpy(desc->driver, "cpp 1");
  desc->caps = HEDDLE_CAP_INLINE | HEDDLE_CAP_HOST_CORES;
  desc->alignment = 64, desc->import_alignment = desc->compute_units = desc->max_streams = 1;
  return HEDDLE_OK;
}

// In the order of plugin.h, whose later versions append members: what is not named is null.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
// clang-format off
constexpr heddle_device_table device_table = {sizeof device_table, close<heddle_pdevice>, device_open, device_query,
    fine<heddle_pdevice *, heddle_error *>, fine<heddle_pdevice *, uint64_t, heddle_error *>};
constexpr heddle_memory_table memory_table = {sizeof memory_table, memory_free, memory_alloc, nullptr, memory_import};
constexpr heddle_copy_table copy_table = {sizeof copy_table, copy, copy, copy_write, copy_read, copy, copy_fill};
constexpr heddle_stream_table stream_table = {sizeof stream_table, release<heddle_pstream>, stream_create,
    fine<heddle_pstream *, heddle_error *>, fine<heddle_pstream *, uint64_t, heddle_error *>,
    fine<heddle_pstream *, heddle_error *>};
constexpr heddle_op_table op_table = {sizeof op_table, release<heddle_plaunch>, release<heddle_pop>, op_query, op_prepare,
    op_bind, op_run, nullptr, op_list};
constexpr heddle_plugin root = {sizeof root, HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, P_FEATURES, P_BUILD, "cpp",
    close<heddle_pinstance>, open_instance, device_count, device_describe, &device_table, &memory_table, &copy_table,
    &stream_table, nullptr, nullptr, &op_table};
// clang-format on
} // namespace

const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  if (host != nullptr && host->abi_major == HEDDLE_ABI_MAJOR) return &root;
  p_fail(err, HEDDLE_EABI, 0, "plugin cpp is built for ABI %d", HEDDLE_ABI_MAJOR);
  return nullptr;
}
