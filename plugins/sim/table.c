/* The table of buffers of an instance. A handle holds a tag, a generation and a slot number, so that a stale or foreign
 * one is recognised and none can be used as an address: its upper bits make it no valid one. */
#include "sim.h"

#define TAG UINT64_C(0x51a7)
#define GENERATIONS UINT32_C(0x00ffffff)

_Static_assert(sizeof(void *) == 8, "handles of sim are packed into 64 bits");

void *sim_alloc(const heddle_host *host, uint64_t bytes) {
  void *p = host->alloc(host->ctx, bytes, 64);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

sim_buffer *sim_table_at(heddle_pinstance *self, uint32_t slot) {
  if (slot >= atomic_load_explicit(&self->n_slots, memory_order_acquire)) return NULL;
  sim_buffer *chunk = atomic_load_explicit(&self->chunks[slot / SIM_TABLE_CHUNK], memory_order_acquire);
  return &chunk[slot % SIM_TABLE_CHUNK];
}

/* Puts a chunk of free entries behind the others. The lock is held. */
static bool grow(heddle_pinstance *self) {
  uint32_t n = atomic_load_explicit(&self->n_slots, memory_order_relaxed);
  if (n == SIM_TABLE_CHUNK * SIM_TABLE_CHUNKS) return false;
  sim_buffer *chunk = sim_alloc(self->host, SIM_TABLE_CHUNK * sizeof *chunk);
  if (chunk == NULL) return false;
  for (uint32_t i = 0; i < SIM_TABLE_CHUNK; i++) {
    chunk[i].slot = n + i;
    chunk[i].next_free = i + 1 < SIM_TABLE_CHUNK ? n + i + 2 : self->first_free;
  }
  self->first_free = n + 1;
  atomic_store_explicit(&self->chunks[n / SIM_TABLE_CHUNK], chunk, memory_order_release);
  atomic_store_explicit(&self->n_slots, n + SIM_TABLE_CHUNK, memory_order_release);
  return true;
}

sim_buffer *sim_table_take(heddle_pinstance *self) {
  sim_buffer *b = NULL;
  pthread_mutex_lock(&self->lock);
  if (self->first_free != 0 || grow(self)) {
    b = sim_table_at(self, self->first_free - 1);
    self->first_free = b->next_free;
  }
  pthread_mutex_unlock(&self->lock);
  return b;
}

heddle_pbuffer *sim_table_publish(heddle_pinstance *self, sim_buffer *b) {
  pthread_mutex_lock(&self->lock);
  self->generation = (self->generation + 1) & GENERATIONS;
  if (self->generation == 0) self->generation = 1;
  uint32_t generation = self->generation;
  pthread_mutex_unlock(&self->lock);
  atomic_store_explicit(&b->generation, generation, memory_order_release);
  return sim_table_handle(b);
}

heddle_pbuffer *sim_table_handle(const sim_buffer *b) {
  return (heddle_pbuffer *)(uintptr_t)(TAG << 48 | (uint64_t)atomic_load(&b->generation) << 24 | b->slot);
}

void sim_table_drop(heddle_pinstance *self, sim_buffer *b) {
  atomic_store_explicit(&b->generation, 0, memory_order_release);
  pthread_mutex_lock(&self->lock);
  b->next_free = self->first_free;
  self->first_free = b->slot + 1;
  pthread_mutex_unlock(&self->lock);
}

sim_buffer *sim_table_get(heddle_pinstance *self, const heddle_pbuffer *handle) {
  uint64_t bits = (uint64_t)(uintptr_t)handle;
  uint32_t generation = (uint32_t)(bits >> 24) & GENERATIONS;
  if (bits >> 48 != TAG || generation == 0) return NULL;
  sim_buffer *b = sim_table_at(self, (uint32_t)bits & 0x00ffffffu);
  if (b == NULL || atomic_load_explicit(&b->generation, memory_order_acquire) != generation) return NULL;
  return b;
}
