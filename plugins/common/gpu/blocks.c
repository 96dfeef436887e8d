/* Device memory where the driver has no pools: blocks that are kept when they are freed, and given again to whom they
 * fit within an eighth. Allocating and freeing through the driver would stop the device each time. */
#include "gpu.h"

typedef struct block block;
struct block {
  gpu_address address;
  uint64_t bytes;
  block *next;
};

enum { BUCKETS = 256 };

/* The used ones by address, the kept ones from small to large. */
struct gpu_blocks {
  pthread_mutex_t lock; /* a leaf: no driver is called with it held */
  block *used[BUCKETS];
  block *kept;
  uint64_t kept_bytes;
};

/* Sizes that blocks come in, so that similar wishes meet the same block: multiples of 512 bytes, and of an eighth of the
 * power of two below where that is more. */
static uint64_t size_of(uint64_t bytes) {
  uint64_t step = 512;
  while (step < (UINT64_C(1) << 60) && step * 16 <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

static block **bucket_of(gpu_blocks *b, gpu_address address) {
  return &b->used[(address >> 9 ^ address >> 21) % BUCKETS];
}

heddle_status gpu_blocks_open(heddle_pdevice *dev, heddle_error *err) {
  void *memory = NULL;
  heddle_status s = gpu_new(dev->host, sizeof *dev->blocks, "a device's blocks", &memory, err);
  if (s != HEDDLE_OK) return s;
  dev->blocks = memory;
  if (pthread_mutex_init(&dev->blocks->lock, NULL) == 0) return HEDDLE_OK;
  dev->host->free(dev->host->ctx, memory);
  dev->blocks = NULL;
  return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no lock for a device's blocks", dev->vendor->name, dev->index);
}

/* The smallest kept block that has the bytes and not an eighth too many; NULL where there is none. */
static block *take_kept(gpu_blocks *b, uint64_t bytes) {
  block *found = NULL;
  pthread_mutex_lock(&b->lock);
  block **at = &b->kept;
  while (*at != NULL && (*at)->bytes < bytes) at = &(*at)->next;
  if (*at != NULL && (*at)->bytes - bytes <= bytes / 8) {
    found = *at;
    *at = found->next;
    b->kept_bytes -= found->bytes;
  }
  pthread_mutex_unlock(&b->lock);
  return found;
}

static void put_used(gpu_blocks *b, block *x) {
  pthread_mutex_lock(&b->lock);
  block **bucket = bucket_of(b, x->address);
  x->next = *bucket;
  *bucket = x;
  pthread_mutex_unlock(&b->lock);
}

int gpu_blocks_get(heddle_pdevice *dev, uint64_t bytes, gpu_address *out, uint64_t *granted) {
  gpu_blocks *b = dev->blocks;
  const heddle_host *host = dev->host;
  bytes = size_of(bytes);
  block *x = take_kept(b, bytes);
  if (x == NULL) {
    x = host->alloc(host->ctx, sizeof *x, _Alignof(block));
    if (x == NULL) return GPU_CODE_NO_MEMORY;
    *x = (block){.bytes = bytes};
    const int code = dev->driver->alloc(&x->address, (size_t)bytes);
    if (code != 0) {
      host->free(host->ctx, x);
      return code;
    }
  }
  *out = x->address;
  *granted = x->bytes;
  put_used(b, x);
  return 0;
}

void gpu_blocks_put(heddle_pdevice *dev, gpu_address address) {
  gpu_blocks *b = dev->blocks;
  pthread_mutex_lock(&b->lock);
  block **at = bucket_of(b, address), *x = NULL;
  while (*at != NULL && (*at)->address != address) at = &(*at)->next;
  x = *at;
  if (x != NULL) {
    *at = x->next;
    for (at = &b->kept; *at != NULL && (*at)->bytes < x->bytes;) at = &(*at)->next;
    x->next = *at;
    *at = x;
    b->kept_bytes += x->bytes;
  }
  pthread_mutex_unlock(&b->lock);
}

uint64_t gpu_blocks_kept(heddle_pdevice *dev) {
  gpu_blocks *b = dev->blocks;
  if (b == NULL) return 0;
  pthread_mutex_lock(&b->lock);
  const uint64_t bytes = b->kept_bytes;
  pthread_mutex_unlock(&b->lock);
  return bytes;
}

static void free_list(heddle_pdevice *dev, block *list) {
  while (list != NULL) {
    block *next = list->next;
    dev->driver->free(list->address);
    dev->host->free(dev->host->ctx, list);
    list = next;
  }
}

void gpu_blocks_trim(heddle_pdevice *dev) {
  gpu_blocks *b = dev->blocks;
  pthread_mutex_lock(&b->lock);
  block *list = b->kept;
  b->kept = NULL;
  b->kept_bytes = 0;
  pthread_mutex_unlock(&b->lock);
  free_list(dev, list);
}

void gpu_blocks_close(heddle_pdevice *dev) {
  gpu_blocks *b = dev->blocks;
  if (b == NULL) return;
  gpu_blocks_trim(dev);
  for (int i = 0; i < BUCKETS; i++) free_list(dev, b->used[i]);
  pthread_mutex_destroy(&b->lock);
  dev->host->free(dev->host->ctx, b);
  dev->blocks = NULL;
}
