/* BatchNormalization in training, and of float64: the kernels of batch.cl. Operands and results are all of float32 or all of
 * float64. The names here are those of plugins/common/more/batch_norm.c. */
#include "plan_portable.h"

enum { CHANNELS, BATCH, PLANE, TRAINS };
enum { EPSILON, MOMENTUM };
enum { PART_SUMS, PART_MEAN, PART_VARIANCE }; /* of the workspace */
enum { CHUNK = 64, MOST_CHUNKS = 256 };       /* elements of a sum, and sums of a channel */

typedef struct batch {
  k_node *n;
  more_op m;
  k_batch p;
  uint8_t type;
} batch;

static heddle_status add(batch *b, uint8_t kernel, int64_t items, double turns, uint32_t n_args, const uint32_t *args,
                         heddle_error *err) {
  b->p.count = items;
  const k_launch how = {.kernel = kernel,
                        .n_types = 1,
                        .types = {b->type},
                        .items = (uint64_t)items,
                        .limit = (uint64_t)(b->p.channels * b->p.chunks),
                        .turns = turns,
                        .floats = 4};
  return k_launch_add(b->n, &how, &b->p, sizeof b->p, n_args, args, err);
}

/* The mean of the batch, or where mode is 1 its variance, into a part. */
static heddle_status add_mean(batch *b, int64_t mode, uint32_t part, heddle_error *err) {
  const int64_t channels = b->p.channels, chunks = b->p.chunks;
  const double each = (double)(b->p.batch * b->p.plane) / (double)chunks;
  const uint32_t x = k_input(b->n, 0), sums = K_WORKSPACE + PART_SUMS, mean = K_WORKSPACE + PART_MEAN;
  b->p.mode = mode;
  heddle_status s =
      add(b, KERNEL_batch_sums, channels * chunks, 4 * each, 3, (uint32_t[]){x, mode != 0 ? mean : x, sums}, err);
  if (s != HEDDLE_OK) return s;
  return add(b, KERNEL_batch_mean, channels, (double)chunks, 2, (uint32_t[]){sums, part}, err);
}

static heddle_status add_running(batch *b, uint32_t k, uint32_t part, heddle_error *err) {
  if (k >= b->m.n_out || !b->m.out[k].here) return HEDDLE_OK;
  return add(b, KERNEL_batch_running, b->p.channels, 0, 3, (uint32_t[]){k_input(b->n, k + 2), part, k_output(b->n, k)},
             err);
}

heddle_status k_plan_batch_any(k_node *n, heddle_error *err) {
  batch b = {.n = n};
  uint32_t mean = K_WORKSPACE + PART_MEAN, variance = K_WORKSPACE + PART_VARIANCE;
  float epsilon[2], momentum[2];
  heddle_status s = k_more_of(n, &b.m, err);
  if (s == HEDDLE_OK) s = k_element_of(n, b.m.in[0].type, &b.type, err);
  if (s != HEDDLE_OK) return s;
  const int64_t *i = b.m.i, each = i[BATCH] * i[PLANE], chunks = (each + CHUNK - 1) / CHUNK;
  k_split_number(b.m.f[EPSILON], epsilon);
  k_split_number(b.m.f[MOMENTUM], momentum);
  b.p = (k_batch){.channels = i[CHANNELS],
                  .batch = i[BATCH],
                  .plane = i[PLANE],
                  .chunks = chunks < 1             ? 1
                            : chunks < MOST_CHUNKS ? chunks
                                                   : MOST_CHUNKS,
                  .epsilon = epsilon[0],
                  .epsilon_rest = epsilon[1],
                  .momentum = momentum[0],
                  .momentum_rest = momentum[1]};
  if (i[TRAINS]) {
    const uint64_t channels = (uint64_t)i[CHANNELS] * b.m.in[0].size;
    n->plan->part_bytes[PART_SUMS] = channels * (uint64_t)b.p.chunks;
    n->plan->part_bytes[PART_MEAN] = n->plan->part_bytes[PART_VARIANCE] = channels;
    s = add_mean(&b, 0, mean, err);
    if (s == HEDDLE_OK) s = add_mean(&b, 1, variance, err);
    if (s == HEDDLE_OK) s = add_running(&b, 1, mean, err);
    if (s == HEDDLE_OK) s = add_running(&b, 2, variance, err);
  } else {
    mean = k_input(n, 3);
    variance = k_input(n, 4);
  }
  if (s != HEDDLE_OK || !b.m.out[0].here) return s;
  return add(&b, KERNEL_batch_any, b.m.out[0].count, 0, 6,
             (uint32_t[]){k_input(n, 0), k_input(n, 1), k_input(n, 2), mean, variance, k_output(n, 0)}, err);
}
