/* The machine: load, compute and store modules that take their instructions from one program, each in order, and wait
 * for one another by tokens only. Each has its own time; a token carries the time at which it was given, so that the
 * cycle count is that of modules which run side by side. A token that the compiler forgot gives wrong numbers here too,
 * since a module runs as far as its tokens let it. */
#include "machine.h"

#include <string.h>

/* Times of the tokens that a neighbour has given and that are not taken yet. More than this many are a full queue:
 * the giver waits. */
#define QUEUE 64
typedef struct token_queue {
  uint64_t time[QUEUE];
  uint32_t first, count;
} token_queue;

/* towards_store[i] leads from module i to i + 1, towards_load[i] from i + 1 to i. */
typedef struct run_state {
  token_queue towards_store[NPU_MODULES - 1], towards_load[NPU_MODULES - 1];
  uint64_t time[NPU_MODULES];
} run_state;

static token_queue *give_to(run_state *s, int module, int bit) {
  if (bit == NPU_GIVE_PREV) return module > 0 ? &s->towards_load[module - 1] : NULL;
  return module + 1 < NPU_MODULES ? &s->towards_store[module] : NULL;
}

static token_queue *take_from(run_state *s, int module, int bit) {
  if (bit == NPU_TAKE_PREV) return module > 0 ? &s->towards_store[module - 1] : NULL;
  return module + 1 < NPU_MODULES ? &s->towards_load[module] : NULL;
}

/* May it start: are its tokens there, and room for those that it gives? */
static int ready(run_state *s, const npu_instr *i) {
  static const int takes[] = {NPU_TAKE_PREV, NPU_TAKE_NEXT}, gives[] = {NPU_GIVE_PREV, NPU_GIVE_NEXT};
  for (int k = 0; k < 2; k++) {
    const token_queue *from = take_from(s, i->module, takes[k]), *to = give_to(s, i->module, gives[k]);
    if ((i->tokens & takes[k]) != 0 && (from == NULL || from->count == 0)) return 0;
    if ((i->tokens & gives[k]) != 0 && (to == NULL || to->count == QUEUE)) return 0;
  }
  return 1;
}

static void take(token_queue *q, uint64_t *now) {
  const uint64_t given = q->time[q->first];
  q->first = (q->first + 1) % QUEUE;
  q->count--;
  if (given > *now) *now = given;
}

static void give(token_queue *q, uint64_t now) {
  q->time[(q->first + q->count) % QUEUE] = now;
  q->count++;
}

/* ---------------------------------------------------------------- moving boxes */

/* Is every byte that the box touches in DRAM? width: bytes of a lane. */
static int box_ok(const npu_machine *m, const npu_box *b, uint64_t width) {
  if (b->n_y < 0 || b->n_x < 0 || b->lanes < 0 || b->lanes > NPU_LANES) return 0;
  if (b->step_y < 0 || b->step_x < 0 || b->step_lane < 0 || b->base > m->dram_bytes) return 0;
  if (b->rows <= 0 || b->columns <= 0 || b->lanes == 0) return 1;
  const uint64_t most = m->dram_bytes;
  if ((uint64_t)b->step_y > most || (uint64_t)b->step_x > most || (uint64_t)b->step_lane > most) return 0;
  /* The furthest byte: each product is below 2^31 * 2^31. */
  const uint64_t last = (uint64_t)b->step_y * (uint64_t)(b->rows - 1) +
                        (uint64_t)b->step_x * (uint64_t)(b->columns - 1) +
                        (uint64_t)b->step_lane * (uint64_t)(b->lanes - 1);
  return last <= most && b->base + last + width <= most;
}

static uint64_t box_cycles(const npu_box *b, uint64_t width) {
  const uint64_t vectors = (uint64_t)b->n_y * (uint64_t)b->n_x;
  const int together = b->step_lane == (int64_t)width;
  const uint64_t each = together ? (NPU_LANES * width + NPU_BUS_BYTES - 1) / NPU_BUS_BYTES : (uint64_t)b->lanes;
  return NPU_MEMORY_CYCLES + vectors * each;
}

/* Where vector (y, x) of the box lies, NULL where it is padding. */
static uint8_t *box_at(const npu_machine *m, const npu_box *b, int32_t y, int32_t x) {
  const int64_t row = (int64_t)b->y + y, column = (int64_t)b->x + x;
  if (row < 0 || row >= b->rows || column < 0 || column >= b->columns) return NULL;
  return m->dram + b->base + (uint64_t)(row * b->step_y + column * b->step_x);
}

/* One vector of bytes; lanes that are not there are 0. */
static void read_bytes(const npu_box *b, const uint8_t *from, uint8_t flip, int8_t out[NPU_LANES]) {
  for (int32_t l = 0; l < NPU_LANES; l++) {
    uint8_t byte = (uint8_t)(l < b->lanes ? b->pad : 0);
    if (from != NULL && l < b->lanes) byte = from[l * b->step_lane] ^ flip;
    out[l] = (int8_t)byte;
  }
}

static npu_end load(npu_machine *m, const npu_instr *i, uint64_t *cycles) {
  const npu_box *b = &i->u.box;
  const uint8_t flip = (i->flags & NPU_FLIP) != 0 ? 0x80 : 0;
  const uint64_t count = (uint64_t)(b->n_y > 0 ? b->n_y : 0) * (uint64_t)(b->n_x > 0 ? b->n_x : 0);
  uint64_t at = i->at;
  if (i->op == NPU_OP_LOAD_WEIGHT) { /* tiles lie side by side */
    const uint64_t bytes = count * NPU_LANES * NPU_LANES;
    if (count > NPU_WEIGHT_TILES || at + count > NPU_WEIGHT_TILES) return NPU_BAD_ADDRESS;
    if (b->base > m->dram_bytes || bytes > m->dram_bytes - b->base) return NPU_BAD_ADDRESS;
    memcpy(m->weight[at], m->dram + b->base, bytes);
    *cycles = NPU_MEMORY_CYCLES + bytes / NPU_BUS_BYTES;
    return NPU_DONE;
  }
  const uint64_t width = i->op == NPU_OP_LOAD_ACC ? sizeof(int32_t) : 1;
  const uint64_t room = i->op == NPU_OP_LOAD_INPUT ? NPU_INPUT_VECTORS : NPU_ACC_VECTORS;
  if (!box_ok(m, b, width) || at > room || count > room - at) return NPU_BAD_ADDRESS;
  *cycles = box_cycles(b, width);
  for (int32_t y = 0; y < b->n_y; y++) {
    for (int32_t x = 0; x < b->n_x; x++, at++) {
      const uint8_t *from = box_at(m, b, y, x);
      if (i->op == NPU_OP_LOAD_INPUT) {
        read_bytes(b, from, flip, m->input[at]);
      } else if (i->op == NPU_OP_LOAD_ACC8) {
        int8_t bytes[NPU_LANES];
        read_bytes(b, from, flip, bytes);
        for (int l = 0; l < NPU_LANES; l++) m->acc[at][l] = bytes[l];
      } else {
        for (int32_t l = 0; l < NPU_LANES; l++) {
          int32_t word = l < b->lanes ? b->pad : 0;
          if (from != NULL && l < b->lanes) memcpy(&word, from + l * b->step_lane, sizeof word);
          m->acc[at][l] = word;
        }
      }
    }
  }
  return NPU_DONE;
}

static npu_end store(npu_machine *m, const npu_instr *i, uint64_t *cycles) {
  const npu_box *b = &i->u.box;
  const uint8_t flip = (i->flags & NPU_FLIP) != 0 ? 0x80 : 0;
  const uint64_t count = (uint64_t)(b->n_y > 0 ? b->n_y : 0) * (uint64_t)(b->n_x > 0 ? b->n_x : 0);
  uint64_t at = i->at;
  if (!box_ok(m, b, 1) || at > NPU_ACC_VECTORS || count > NPU_ACC_VECTORS - at) return NPU_BAD_ADDRESS;
  *cycles = box_cycles(b, 1);
  for (int32_t y = 0; y < b->n_y; y++) {
    for (int32_t x = 0; x < b->n_x; x++, at++) {
      uint8_t *to = box_at(m, b, y, x);
      if (to == NULL) continue;
      for (int32_t l = 0; l < b->lanes; l++) to[l * b->step_lane] = (uint8_t)((uint32_t)m->acc[at][l] & 0xff) ^ flip;
    }
  }
  return NPU_DONE;
}

/* ---------------------------------------------------------------- computing */

/* Are first and all that the loops add to it inside [0, room)? */
static int loops_ok(const int32_t n[3], const int32_t step[3], uint32_t first, int64_t extra, int64_t room) {
  int64_t low = first, high = (int64_t)first + extra;
  for (int i = 0; i < 3; i++) {
    if (n[i] < 1 || n[i] > NPU_ACC_VECTORS) return 0;
    const int64_t far = (int64_t)(n[i] - 1) * step[i];
    if (far < 0) low += far;
    else high += far;
  }
  return low >= 0 && high < room;
}

static npu_end matmul(npu_machine *m, const npu_instr *i, uint64_t *cycles) {
  const npu_loops *u = &i->u.loops;
  const int clear = (i->flags & NPU_CLEAR) != 0;
  if (!loops_ok(u->n, u->acc, i->at, 0, NPU_ACC_VECTORS)) return NPU_BAD_ADDRESS;
  if (!clear && (!loops_ok(u->n, u->input, i->input, 0, NPU_INPUT_VECTORS) ||
                 !loops_ok(u->n, u->weight, i->weight, 0, NPU_WEIGHT_TILES)))
    return NPU_BAD_ADDRESS;
  *cycles = (uint64_t)u->n[0] * (uint64_t)u->n[1] * (uint64_t)u->n[2];
  for (int32_t a = 0; a < u->n[0]; a++) {
    for (int32_t b = 0; b < u->n[1]; b++) {
      for (int32_t c = 0; c < u->n[2]; c++) {
        int32_t *acc = m->acc[(int32_t)i->at + a * u->acc[0] + b * u->acc[1] + c * u->acc[2]];
        if (clear) {
          memset(acc, 0, sizeof m->acc[0]);
          continue;
        }
        const int8_t *x = m->input[(int32_t)i->input + a * u->input[0] + b * u->input[1] + c * u->input[2]];
        const int8_t(*w)[NPU_LANES] =
            (const int8_t(*)[NPU_LANES])
                m->weight[(int32_t)i->weight + a * u->weight[0] + b * u->weight[1] + c * u->weight[2]];
        for (int r = 0; r < NPU_LANES; r++) {
          int32_t sum = 0; /* at most 16 * 2^14 */
          for (int l = 0; l < NPU_LANES; l++) sum += w[r][l] * x[l];
          acc[r] = (int32_t)((uint32_t)acc[r] + (uint32_t)sum); /* the adder wraps */
        }
      }
    }
  }
  return NPU_DONE;
}

/* v / 2^shift to the nearest, halves to the even. */
static int64_t shift_round(int64_t v, int32_t shift) {
  if (shift <= 0) return v;
  if (shift > 62) return 0;
  const int64_t unit = INT64_C(1) << shift;
  int64_t whole = v / unit, rest = v % unit;
  if (rest < 0) rest += unit, whole--;
  if (rest > unit / 2 || (rest == unit / 2 && (whole & 1) != 0)) whole++;
  return whole;
}

static int32_t saturate(int64_t v) {
  if (v > INT32_MAX) return INT32_MAX;
  return v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

static npu_end alu(npu_machine *m, const npu_instr *i, uint64_t *cycles) {
  const npu_loops *u = &i->u.loops;
  const int immediate = (i->flags & NPU_IMMEDIATE) != 0;
  if (i->alu > NPU_ALU_SCALE || (immediate && i->alu == NPU_ALU_SCALE)) return NPU_BAD_INSTRUCTION;
  if (!loops_ok(u->n, u->acc, i->at, 0, NPU_ACC_VECTORS)) return NPU_BAD_ADDRESS;
  if (!immediate && !loops_ok(u->n, u->weight, i->weight, i->alu == NPU_ALU_SCALE, NPU_ACC_VECTORS))
    return NPU_BAD_ADDRESS;
  *cycles = (uint64_t)u->n[0] * (uint64_t)u->n[1] * (uint64_t)u->n[2];
  for (int32_t a = 0; a < u->n[0]; a++) {
    for (int32_t b = 0; b < u->n[1]; b++) {
      for (int32_t c = 0; c < u->n[2]; c++) {
        int32_t *to = m->acc[(int32_t)i->at + a * u->acc[0] + b * u->acc[1] + c * u->acc[2]];
        const int32_t second = (int32_t)i->weight + a * u->weight[0] + b * u->weight[1] + c * u->weight[2];
        for (int l = 0; l < NPU_LANES; l++) {
          const int32_t v = immediate ? u->imm : m->acc[second][l];
          switch (i->alu) {
          case NPU_ALU_SET: to[l] = v; break;
          case NPU_ALU_ADD: to[l] = (int32_t)((uint32_t)to[l] + (uint32_t)v); break;
          case NPU_ALU_MAX: to[l] = to[l] > v ? to[l] : v; break;
          case NPU_ALU_MIN: to[l] = to[l] < v ? to[l] : v; break;
          case NPU_ALU_SHIFT: to[l] = saturate(shift_round(to[l], v)); break;
          default: to[l] = saturate(shift_round((int64_t)to[l] * v, m->acc[second + 1][l])); break;
          }
        }
      }
    }
  }
  return NPU_DONE;
}

static npu_end execute(npu_machine *m, const npu_instr *i, uint64_t *cycles) {
  static const uint8_t module_of[] = {NPU_MODULES, NPU_LOAD,    NPU_LOAD,    NPU_COMPUTE,
                                      NPU_COMPUTE, NPU_COMPUTE, NPU_COMPUTE, NPU_STORE};
  *cycles = 0;
  if (i->op == NPU_OP_NONE) return NPU_DONE;
  if (i->op >= sizeof module_of || module_of[i->op] != i->module) return NPU_BAD_INSTRUCTION;
  switch (i->op) {
  case NPU_OP_MATMUL: return matmul(m, i, cycles);
  case NPU_OP_ALU: return alu(m, i, cycles);
  case NPU_OP_STORE: return store(m, i, cycles);
  default: return load(m, i, cycles);
  }
}

/* ---------------------------------------------------------------- the program */

npu_end npu_machine_run(npu_machine *m, uint64_t address, uint64_t n, uint64_t *where) {
  run_state s;
  uint64_t next[NPU_MODULES] = {0}; /* of each module: where it looks for its next instruction */
  memset(&s, 0, sizeof s);
  *where = 0;
  if (address > m->dram_bytes || n > (m->dram_bytes - address) / sizeof(npu_instr)) return NPU_BAD_ADDRESS;
  for (uint64_t done = 0; done < n;) {
    const uint64_t before = done;
    for (int module = 0; module < NPU_MODULES; module++) {
      for (; next[module] < n; next[module]++) {
        npu_instr i;
        memcpy(&i, m->dram + address + next[module] * sizeof i, sizeof i);
        *where = next[module];
        if (i.module >= NPU_MODULES) return NPU_BAD_INSTRUCTION;
        if (i.module != module) continue;
        if (!ready(&s, &i)) break;
        uint64_t cycles;
        uint64_t *now = &s.time[module];
        if ((i.tokens & NPU_TAKE_PREV) != 0) take(take_from(&s, module, NPU_TAKE_PREV), now);
        if ((i.tokens & NPU_TAKE_NEXT) != 0) take(take_from(&s, module, NPU_TAKE_NEXT), now);
        const npu_end end = execute(m, &i, &cycles);
        if (end != NPU_DONE) return end;
        *now += NPU_START_CYCLES + cycles;
        if ((i.tokens & NPU_GIVE_PREV) != 0) give(give_to(&s, module, NPU_GIVE_PREV), *now);
        if ((i.tokens & NPU_GIVE_NEXT) != 0) give(give_to(&s, module, NPU_GIVE_NEXT), *now);
        done++;
      }
    }
    if (done == before) return NPU_STUCK;
  }
  uint64_t last = 0;
  for (int module = 0; module < NPU_MODULES; module++)
    if (s.time[module] > last) last = s.time[module];
  m->cycles += last;
  return NPU_DONE;
}

uint64_t npu_copy_cycles(uint64_t bytes) {
  return NPU_START_CYCLES + NPU_MEMORY_CYCLES + bytes / NPU_LINK_BYTES;
}
