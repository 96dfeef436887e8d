/* The compiler's second half: tiles each layer over the scratchpads and writes its instructions, with the tokens that
 * let the load module fill one half of a scratchpad while the matrix core works in the other. */
#include "program.h"

#include <stdbool.h>

/* What is on its way while a layer is written. */
typedef struct writer {
  npu_program *program;
  uint64_t loads;   /* groups of loads so far: group k fills half k % 2 */
  uint64_t tiles;   /* results so far: tile t lies in half t % 2 */
  uint64_t weights; /* of the layer: offsets in the constants */
  uint64_t numbers;
} writer;

/* Makes room for n more elements behind count; NULL-safe failure is noted in the program. */
static bool grow(npu_program *p, void **array, uint64_t count, uint64_t n, uint64_t *room, uint64_t size) {
  if (p->no_memory) return false;
  if (count + n <= *room) return true;
  uint64_t want = *room < 64 ? 64 : *room * 2;
  if (want < count + n) want = count + n;
  void *bigger = p->host->alloc(p->host->ctx, want * size, 16);
  if (bigger == NULL) {
    p->no_memory = 1;
    return false;
  }
  if (count > 0) memcpy(bigger, *array, count * size);
  p->host->free(p->host->ctx, *array);
  *array = bigger;
  *room = want;
  return true;
}

static void emit(writer *w, npu_instr i) {
  npu_program *p = w->program;
  void *array = p->code;
  if (!grow(p, &array, p->n_code, 1, &p->room_code, sizeof i)) return;
  p->code = array;
  p->code[p->n_code++] = i;
}

/* Room for constants, zeroed; NULL where memory is out. *at is their offset. */
static uint8_t *reserve(npu_program *p, uint64_t bytes, uint64_t *at) {
  void *array = p->constants;
  *at = p->constant_bytes;
  if (!grow(p, &array, p->constant_bytes, bytes, &p->room_constants, 1)) return NULL;
  p->constants = array;
  p->constant_bytes += bytes;
  return memset(p->constants + *at, 0, bytes);
}

static int32_t least(int64_t a, int64_t b) {
  return (int32_t)(a < b ? a : b);
}

static int32_t blocks_of(int32_t channels) {
  return (channels + NPU_LANES - 1) / NPU_LANES;
}

/* ---------------------------------------------------------------- constants */

/* Weights as tiles [part][block of m][block of c][ky][kx][16 m][16 c], with zeros for channels that are not there, or are
 * not of the same group. Part 1 is what part 0 left of weights that do not fit a byte. */
static bool pack_weights(writer *w, const npu_layer *l) {
  const int32_t bm = blocks_of(l->m), bc = blocks_of(l->c), window = l->kh * l->kw;
  const int32_t inside = l->c / l->groups, results = l->m / l->groups; /* of a group */
  uint8_t *tiles =
      reserve(w->program, (uint64_t)l->parts * (uint64_t)bm * (uint64_t)bc * (uint64_t)window * 256, &w->weights);
  if (tiles == NULL) return false;
  for (int32_t m = 0; m < l->m; m++) {
    for (int32_t i = 0; i < inside; i++) {
      const int32_t c = m / results * inside + i;
      for (int32_t k = 0; k < window; k++) {
        const int64_t from = l->is_matrix ? (int64_t)c * l->m + m : ((int64_t)m * inside + i) * window + k;
        int32_t rest = npu_weight_at(l, m, from);
        for (int32_t part = 0; part < l->parts; part++) {
          const int64_t block = (int64_t)part * bm + m / NPU_LANES, tile = (block * bc + c / NPU_LANES) * window + k;
          const int32_t value = rest < -128 ? -128 : rest > 127 ? 127 : rest;
          tiles[(tile * NPU_LANES + m % NPU_LANES) * NPU_LANES + c % NPU_LANES] = (uint8_t)value;
          rest -= value;
        }
      }
    }
  }
  return true;
}

/* Three vectors of int32 a block of results: the bias, which takes the operand's zero point out of the sum,
 * sum(w * (x - zero)) = sum(w * x) - zero * sum(w); the multiplier; the shift. */
static bool pack_numbers(writer *w, const npu_layer *l) {
  const int64_t terms = (int64_t)l->c / l->groups * l->kh * l->kw;
  uint8_t *bytes = reserve(w->program, (uint64_t)blocks_of(l->m) * 3 * NPU_LANES * sizeof(int32_t), &w->numbers);
  if (bytes == NULL) return false;
  for (int32_t m = 0; m < l->m; m++) {
    int32_t number[3], sum = 0;
    for (int64_t k = 0; k < terms; k++) sum += npu_weight_at(l, m, l->is_matrix ? k * l->m + m : m * terms + k);
    const int32_t bias = l->bias != NULL ? npu_int_at(l->bias, m) : 0;
    number[0] = (int32_t)((uint32_t)bias - (uint32_t)(l->zero_x * sum));
    npu_layer_scale(l, m, &number[1], &number[2]);
    for (int i = 0; i < 3; i++) {
      const int64_t at = ((int64_t)(m / NPU_LANES) * 3 + i) * NPU_LANES + m % NPU_LANES;
      memcpy(bytes + (uint64_t)at * sizeof(int32_t), &number[i], sizeof(int32_t));
    }
  }
  return true;
}

/* ---------------------------------------------------------------- pieces of a tile */

/* One tile of one block of channels of one image. */
typedef struct tile {
  int32_t n, block, y, x, th, tw; /* results [y, y + th) x [x, x + tw) */
} tile;

static int32_t rows_of(const npu_layer *l, const tile *t) {
  return (t->th - 1) * l->sy + (l->kh - 1) * l->dy + 1;
}

static int32_t columns_of(const npu_layer *l, const tile *t) {
  return (t->tw - 1) * l->sx + (l->kw - 1) * l->dx + 1;
}

/* The operand's pixels under a tile, of channels [16 * block, ...). */
static npu_box operand_box(const npu_plan *plan, const npu_layer *l, const tile *t, int32_t block, int32_t pad) {
  const npu_view v = npu_plan_view(plan, l, 0);
  return (npu_box){.base = v.offset + (uint64_t)(t->n * v.step_n + block * v.step_block),
                   .operand = v.operand,
                   .step_y = v.step_y,
                   .step_x = v.step_x,
                   .step_lane = v.step_lane,
                   .y = t->y * l->sy - l->top,
                   .x = t->x * l->sx - l->left,
                   .rows = l->h,
                   .columns = l->w,
                   .n_y = rows_of(l, t),
                   .n_x = columns_of(l, t),
                   .lanes = v.blocked ? NPU_LANES : least(NPU_LANES, l->c - (int64_t)block * NPU_LANES),
                   .pad = pad};
}

static npu_instr alu(uint32_t at, int op, const tile *t, uint8_t flags, int32_t imm) {
  npu_instr i = {.op = NPU_OP_ALU, .module = NPU_COMPUTE, .flags = flags, .alu = (uint16_t)op, .at = at};
  i.u.loops = (npu_loops){.n = {t->th, t->tw, 1}, .acc = {t->tw, 1, 0}, .imm = imm};
  return i;
}

static void emit_store(writer *w, const npu_plan *plan, const npu_layer *l, const tile *t, uint32_t at) {
  const npu_view v = npu_plan_view(plan, l, 1);
  npu_instr i = {.op = NPU_OP_STORE, .module = NPU_STORE, .tokens = NPU_TAKE_PREV | NPU_GIVE_PREV, .at = at};
  if (l->flip_y) i.flags = NPU_FLIP;
  i.u.box = (npu_box){.base = v.offset + (uint64_t)(t->n * v.step_n + t->block * v.step_block),
                      .operand = v.operand,
                      .step_y = v.step_y,
                      .step_x = v.step_x,
                      .step_lane = v.step_lane,
                      .y = t->y,
                      .x = t->x,
                      .rows = l->oh,
                      .columns = l->ow,
                      .n_y = t->th,
                      .n_x = t->tw,
                      .lanes = v.blocked ? NPU_LANES : least(NPU_LANES, l->m - (int64_t)t->block * NPU_LANES)};
  emit(w, i);
}

/* ---------------------------------------------------------------- convolution */

/* Loads the operand and the weights for input block c (a part of them), and multiplies them into the tile. */
static void emit_products(writer *w, const npu_plan *plan, const npu_layer *l, const tile *t, int32_t part, int32_t c,
                          uint32_t acc) {
  const uint32_t half = (uint32_t)(w->loads % 2), window = (uint32_t)(l->kh * l->kw);
  npu_instr x = {.op = NPU_OP_LOAD_INPUT, .module = NPU_LOAD, .at = half * NPU_HALF_INPUT};
  if (w->loads >= 2) x.tokens = NPU_TAKE_NEXT; /* until the products before the last have read this half */
  if (l->flip_x) x.flags = NPU_FLIP;
  x.u.box = operand_box(plan, l, t, c, l->zero_x);
  emit(w, x);
  npu_instr k = {.op = NPU_OP_LOAD_WEIGHT, .module = NPU_LOAD, .tokens = NPU_GIVE_NEXT, .at = half * NPU_HALF_WEIGHT};
  const int32_t block = part * blocks_of(l->m) + t->block;
  const uint64_t first = ((uint64_t)block * (uint64_t)blocks_of(l->c) + (uint64_t)c) * window;
  k.u.box =
      (npu_box){.base = w->weights + first * 256, .operand = NPU_OPERAND_CONSTANTS, .n_y = 1, .n_x = (int32_t)window};
  emit(w, k);
  for (int32_t ky = 0; ky < l->kh; ky++) {
    npu_instr i = {.op = NPU_OP_MATMUL, .module = NPU_COMPUTE, .at = acc};
    const int32_t columns = columns_of(l, t);
    if (ky == 0) i.tokens |= NPU_TAKE_PREV;
    if (ky == l->kh - 1) i.tokens |= NPU_GIVE_PREV;
    i.input = half * NPU_HALF_INPUT + (uint32_t)(ky * l->dy * columns);
    i.weight = half * NPU_HALF_WEIGHT + (uint32_t)(ky * l->kw);
    i.u.loops = (npu_loops){.n = {t->th, t->tw, l->kw},
                            .acc = {t->tw, 1, 0},
                            .input = {l->sy * columns, l->sx, l->dx},
                            .weight = {0, 0, 1}};
    emit(w, i);
  }
  w->loads++;
}

/* Sums to bytes: bias, scale, limits, zero point. The limits come before the zero point, so that the adder cannot wrap. */
static void emit_requantise(writer *w, const npu_layer *l, const tile *t, uint32_t acc) {
  npu_instr numbers = {.op = NPU_OP_LOAD_ACC, .module = NPU_COMPUTE, .at = NPU_ACC_PARAMETERS};
  numbers.u.box = (npu_box){.base = w->numbers + (uint64_t)t->block * 3 * NPU_LANES * sizeof(int32_t),
                            .operand = NPU_OPERAND_CONSTANTS,
                            .step_x = NPU_LANES * sizeof(int32_t),
                            .step_lane = sizeof(int32_t),
                            .rows = 1,
                            .columns = 3,
                            .n_y = 1,
                            .n_x = 3,
                            .lanes = NPU_LANES};
  emit(w, numbers);
  npu_instr bias = alu(acc, NPU_ALU_ADD, t, 0, 0), scale = alu(acc, NPU_ALU_SCALE, t, 0, 0);
  bias.weight = NPU_ACC_PARAMETERS;
  scale.weight = NPU_ACC_PARAMETERS + 1;
  emit(w, bias);
  emit(w, scale);
  emit(w, alu(acc, NPU_ALU_MAX, t, NPU_IMMEDIATE, -128 - l->zero_y));
  emit(w, alu(acc, NPU_ALU_MIN, t, NPU_IMMEDIATE, 127 - l->zero_y));
  npu_instr last = alu(acc, NPU_ALU_ADD, t, NPU_IMMEDIATE, l->zero_y);
  last.tokens = NPU_GIVE_NEXT;
  emit(w, last);
}

static void emit_conv_tile(writer *w, const npu_plan *plan, const npu_layer *l, const tile *t) {
  const uint32_t acc = (uint32_t)(w->tiles % 2) * NPU_HALF_ACC;
  npu_instr clear = {.op = NPU_OP_MATMUL, .module = NPU_COMPUTE, .flags = NPU_CLEAR, .at = acc};
  clear.u.loops = (npu_loops){.n = {t->th, t->tw, 1}, .acc = {t->tw, 1, 0}};
  if (w->tiles >= 2) clear.tokens = NPU_TAKE_NEXT; /* until the store before the last has read this half */
  emit(w, clear);
  /* Only the blocks of channels that the groups of these results read. */
  const int32_t results = l->m / l->groups, inside = l->c / l->groups;
  const int32_t last = least((int64_t)(t->block + 1) * NPU_LANES, l->m) - 1;
  const int32_t from = t->block * NPU_LANES / results * inside, to = (last / results + 1) * inside;
  for (int32_t part = 0; part < l->parts; part++)
    for (int32_t c = from / NPU_LANES; c < blocks_of(to); c++) emit_products(w, plan, l, t, part, c, acc);
  emit_requantise(w, l, t, acc);
  emit_store(w, plan, l, t, acc);
  w->tiles++;
}

/* ---------------------------------------------------------------- pool */

static void emit_pool_tile(writer *w, const npu_plan *plan, const npu_layer *l, const tile *t) {
  const uint32_t acc = (uint32_t)(w->tiles % 2) * NPU_HALF_POOL;
  const int32_t columns = columns_of(l, t);
  npu_instr x = {.op = NPU_OP_LOAD_ACC8, .module = NPU_COMPUTE, .at = NPU_POOL_INPUT};
  if (w->tiles >= 2) x.tokens = NPU_TAKE_NEXT;
  if (l->flip_x) x.flags = NPU_FLIP;
  x.u.box = operand_box(plan, l, t, t->block, -128);
  emit(w, x);
  emit(w, alu(acc, NPU_ALU_SET, t, NPU_IMMEDIATE, -128));
  for (int32_t ky = 0; ky < l->kh; ky++) {
    npu_instr i = alu(acc, NPU_ALU_MAX, t, 0, 0);
    i.weight = NPU_POOL_INPUT + (uint32_t)(ky * l->dy * columns);
    i.u.loops.n[2] = l->kw;
    i.u.loops.weight[0] = l->sy * columns, i.u.loops.weight[1] = l->sx, i.u.loops.weight[2] = l->dx;
    if (ky == l->kh - 1) i.tokens = NPU_GIVE_NEXT;
    emit(w, i);
  }
  emit_store(w, plan, l, t, acc);
  w->tiles++;
}

/* ---------------------------------------------------------------- layers */

static npu_instr only_tokens(int module, int tokens) {
  return (npu_instr){.op = NPU_OP_NONE, .module = (uint8_t)module, .tokens = (uint8_t)tokens};
}

/* Ends a layer: takes the tokens that are left, and holds back the loads of the next layer until all is stored. */
static void emit_end(writer *w) {
  for (uint64_t k = 0; k < w->loads && k < 2; k++) emit(w, only_tokens(NPU_LOAD, NPU_TAKE_NEXT));
  for (uint64_t k = 0; k < w->tiles && k < 2; k++) emit(w, only_tokens(NPU_COMPUTE, NPU_TAKE_NEXT));
  emit(w, only_tokens(NPU_COMPUTE, NPU_GIVE_PREV));
  emit(w, only_tokens(NPU_LOAD, NPU_TAKE_NEXT));
  w->loads = w->tiles = 0;
}

static void emit_layer(writer *w, const npu_plan *plan, const npu_layer *l) {
  if (!l->is_pool && (!pack_weights(w, l) || !pack_numbers(w, l))) return;
  for (int32_t n = 0; n < l->n; n++) {
    for (int32_t y = 0; y < l->oh; y += l->th) {
      for (int32_t x = 0; x < l->ow; x += l->tw) {
        for (int32_t block = 0; block < blocks_of(l->m); block++) {
          const tile t = {n, block, y, x, least(l->th, l->oh - y), least(l->tw, l->ow - x)};
          if (l->is_pool) emit_pool_tile(w, plan, l, &t);
          else emit_conv_tile(w, plan, l, &t);
        }
      }
    }
  }
  emit_end(w);
}

heddle_status npu_compile(const npu_plan *plan, npu_program *out, heddle_error *err) {
  npu_program program = {.host = plan->host, .workspace_bytes = plan->workspace_bytes};
  writer w = {.program = &program};
  for (uint32_t i = 0; i < plan->n_layers; i++) emit_layer(&w, plan, &plan->layers[i]);
  if (program.no_memory) {
    npu_program_free(&program);
    return p_fail(err, HEDDLE_ENOMEM, 0, "npu: no memory to compile a region of %u nodes", plan->n_layers);
  }
  *out = program;
  return HEDDLE_OK;
}

void npu_program_free(npu_program *program) {
  program->host->free(program->host->ctx, program->code);
  program->host->free(program->host->ctx, program->constants);
}
