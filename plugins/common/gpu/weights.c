/* Constants that a device has in bfloat16, once for each content: programs for other shapes, and models that share weights,
 * find what was rounded before. */
#include "plugins/common/filecache.h"
#include "plugins/common/gpu/product.h"

typedef struct weight weight;
struct weight {
  filecache_key key;
  gpu_address address;
  uint64_t users;
  weight *next;
};

struct gpu_weights {
  pthread_mutex_t lock; /* guards first; the driver is called with it held, so that each content is rounded once */
  weight *first;
};

heddle_status gpu_weights_open(heddle_pdevice *dev, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = gpu_new(dev->host, sizeof *dev->weights, "a device's weights", &memory, err);
  if (s != HEDDLE_OK) return s;
  dev->weights = memory;
  if (pthread_mutex_init(&dev->weights->lock, NULL) == 0) return HEDDLE_OK;
  dev->host->free(dev->host->ctx, memory);
  dev->weights = NULL;
  return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for a device's weights", dev->vendor->name, dev->index);
}

void gpu_weights_close(heddle_pdevice *dev) {
  gpu_weights *w = dev->weights;
  if (w == NULL) return;
  while (w->first != NULL) { /* none, unless an operator outlives its device */
    weight *next = w->first->next;
    dev->host->free(dev->host->ctx, w->first);
    w->first = next;
  }
  pthread_mutex_destroy(&w->lock);
  dev->host->free(dev->host->ctx, w);
  dev->weights = NULL;
}

/* As half.cl does: to nearest, halves to even; NaN stays one. */
static uint16_t rounded(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return (uint16_t)(bits >> 16 | 0x40U);
  return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static heddle_status put_rounded(heddle_pdevice *dev, const float *data, uint64_t count, gpu_address *out,
                                 heddle_error *err) {
  const uint64_t bytes = (count + 1) / 2 * sizeof(uint32_t);
  gpu_scope scope;
  uint16_t *half = dev->host->alloc(dev->host->ctx, bytes, sizeof(uint32_t));
  if (half == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for weights", dev->vendor->name, dev->index);
  for (uint64_t i = 0; i < count; i++) half[i] = rounded(data[i]);
  if (count % 2 != 0) half[count] = 0;
  heddle_status s = gpu_block_get(dev, bytes, out, err);
  if (s == HEDDLE_OK) s = gpu_enter(dev, &scope, err);
  if (s == HEDDLE_OK) {
    s = gpu_check(dev, dev->driver->copy_h2d(*out, half, bytes, dev->service), "write weights", err);
    gpu_leave(dev, &scope);
  }
  if (s == HEDDLE_OK) s = gpu_stream_wait(dev, dev->service, UINT64_MAX, err);
  dev->host->free(dev->host->ctx, half);
  if (s != HEDDLE_OK && *out != 0) gpu_block_put(dev, *out);
  if (s != HEDDLE_OK) *out = 0;
  return s;
}

static weight *find_weight(const gpu_weights *w, const filecache_key *key) {
  weight *x = w->first;
  while (x != NULL && memcmp(&x->key, key, sizeof *key) != 0) x = x->next;
  return x;
}

heddle_status gpu_weight_get(heddle_pdevice *dev, const float *data, uint64_t count, gpu_address *out,
                             heddle_error *err) {
  gpu_weights *w = dev->weights;
  filecache_key key = filecache_key_start();
  void *memory = NULL;
  heddle_status s = HEDDLE_OK;
  filecache_key_add(&key, &count, sizeof count);
  filecache_key_add(&key, data, (size_t)(count * sizeof *data));
  key = filecache_key_end(key);
  pthread_mutex_lock(&w->lock);
  weight *x = find_weight(w, &key);
  if (x == NULL) {
    s = gpu_new(dev->host, sizeof *x, "weights", &memory, err);
    x = memory;
    if (s == HEDDLE_OK) s = put_rounded(dev, data, count, &x->address, err);
    if (s == HEDDLE_OK) {
      x->key = key;
      x->next = w->first;
      w->first = x;
    } else {
      dev->host->free(dev->host->ctx, memory);
    }
  }
  if (s == HEDDLE_OK) {
    x->users++;
    *out = x->address;
  }
  pthread_mutex_unlock(&w->lock);
  return s;
}

void gpu_weight_put(heddle_pdevice *dev, gpu_address address) {
  gpu_weights *w = dev->weights;
  if (address == 0) return;
  pthread_mutex_lock(&w->lock);
  weight **at = &w->first;
  while (*at != NULL && (*at)->address != address) at = &(*at)->next;
  weight *x = *at;
  if (x != NULL && --x->users == 0) *at = x->next;
  else x = NULL;
  pthread_mutex_unlock(&w->lock);
  if (x == NULL) return;
  gpu_block_put(dev, address);
  dev->host->free(dev->host->ctx, x);
}
