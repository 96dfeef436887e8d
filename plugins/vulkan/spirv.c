/* Reads SPIR-V as far as launches need it, by the numbers of the SPIR-V specification (version 1.6, sections 2.3 and 3). */
#include "spirv.h"

#include <string.h>

enum {
  MAGIC = 0x07230203,
  HEAD = 5,          /* words: magic, version, generator, bound of ids, 0 */
  MOST_IDS = 1 << 20 /* larger modules are no kernels */
};

enum { /* instructions */
       OP_ENTRY_POINT = 15,
       OP_EXECUTION_MODE = 16,
       OP_CAPABILITY = 17,
       OP_TYPE_INT = 21,
       OP_TYPE_FLOAT = 22,
       OP_TYPE_STRUCT = 30,
       OP_TYPE_POINTER = 32,
       OP_CONSTANT = 43,
       OP_COMPOSITE = 44,
       OP_SPEC_CONSTANT = 50,
       OP_SPEC_COMPOSITE = 51,
       OP_VARIABLE = 59,
       OP_DECORATE = 71,
       OP_MEMBER_DECORATE = 72
};

enum { MODEL_COMPUTE = 5, MODE_LOCAL_SIZE = 17 };
enum { CLASS_UNIFORM = 2, CLASS_PUSH = 9, CLASS_STORAGE = 12 };
enum { IS_BLOCK = 2, IS_BUFFER_BLOCK = 3, IS_BUILT_IN = 11, IS_BINDING = 33, IS_SET = 34, IS_OFFSET = 35 };
enum { BUILT_IN_GROUP_SIZE = 25 };

/* What is known of an id. */
typedef struct id {
  const uint32_t *made; /* the instruction that makes it, or NULL */
  uint32_t binding, set;
  bool is_block, is_buffer_block, has_binding, is_group_size;
} id;

typedef struct reader {
  const uint32_t *words;
  uint64_t count;
  id *ids;
  uint32_t bound;
} reader;

static uint32_t length_of(const uint32_t *at) {
  return *at >> 16;
}

static uint32_t op_of(const uint32_t *at) {
  return *at & 0xFFFF;
}

heddle_status vlk_spirv_check(const uint32_t *words, uint64_t count, heddle_error *err) {
  if (count < HEAD || words[0] != MAGIC)
    return p_fail(err, HEDDLE_EFORMAT, 0, "a module of %llu words does not begin as SPIR-V does",
                  (unsigned long long)count);
  if (words[3] > MOST_IDS)
    return p_fail(err, HEDDLE_EFORMAT, 0, "SPIR-V with %u ids is larger than any kernel", words[3]);
  for (uint64_t at = HEAD; at < count; at += length_of(&words[at])) {
    if (length_of(&words[at]) == 0 || length_of(&words[at]) > count - at)
      return p_fail(err, HEDDLE_EFORMAT, 0, "SPIR-V whose instruction at word %llu of %llu goes beyond its end",
                    (unsigned long long)at, (unsigned long long)count);
  }
  return HEDDLE_OK;
}

/* The words of the id that an instruction's operand names; NULL where that is none, or made by another kind. */
static const uint32_t *made_by(const reader *r, uint32_t number, uint32_t op, uint32_t least) {
  const uint32_t *at = number < r->bound ? r->ids[number].made : NULL;
  return at != NULL && op_of(at) == op && length_of(at) >= least ? at : NULL;
}

static void note_made(reader *r, const uint32_t *at, uint32_t operand) {
  if (length_of(at) > operand && at[operand] < r->bound) r->ids[at[operand]].made = at;
}

static void note_decoration(reader *r, const uint32_t *at) {
  if (length_of(at) < 3 || at[1] >= r->bound) return;
  id *x = &r->ids[at[1]];
  uint32_t value = length_of(at) > 3 ? at[3] : 0;
  switch (at[2]) {
  case IS_BLOCK: x->is_block = true; break;
  case IS_BUFFER_BLOCK: x->is_buffer_block = true; break;
  case IS_SET: x->set = value; break;
  case IS_BINDING:
    x->has_binding = true;
    x->binding = value;
    break;
  case IS_BUILT_IN: x->is_group_size = value == BUILT_IN_GROUP_SIZE; break;
  default: break;
  }
}

static void note_capability(uint32_t number, vlk_interface *out) {
  static const struct {
    uint16_t number, bit;
  } known[] = {{9, VLK_NEEDS_FLOAT16},      {10, VLK_NEEDS_FLOAT64},     {11, VLK_NEEDS_INT64},
               {22, VLK_NEEDS_INT16},       {39, VLK_NEEDS_INT8},        {4433, VLK_NEEDS_STORAGE16},
               {4434, VLK_NEEDS_STORAGE16}, {4435, VLK_NEEDS_STORAGE16}, {4448, VLK_NEEDS_STORAGE8},
               {4449, VLK_NEEDS_STORAGE8},  {4450, VLK_NEEDS_STORAGE8}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].number == number) out->capabilities |= known[i].bit;
}

/* Whether an entry point is the one that is looked for. */
static bool is_entry(const uint32_t *at, const char *entry) {
  const uint64_t room = ((uint64_t)length_of(at) - 3) * sizeof(uint32_t), n = strlen(entry) + 1;
  return length_of(at) > 3 && at[1] == MODEL_COMPUTE && n <= room && memcmp(at + 3, entry, n) == 0;
}

static heddle_status scan(reader *r, const char *entry, vlk_interface *out, heddle_error *err) {
  uint32_t id_of_entry = 0;
  bool found = false;
  for (uint64_t i = HEAD; i < r->count; i += length_of(&r->words[i])) {
    const uint32_t *at = &r->words[i];
    switch (op_of(at)) {
    case OP_ENTRY_POINT:
      if (found || !is_entry(at, entry)) break;
      found = true;
      id_of_entry = at[2];
      break;
    case OP_EXECUTION_MODE: /* behind the entry points */
      if (found && length_of(at) >= 6 && at[1] == id_of_entry && at[2] == MODE_LOCAL_SIZE)
        memcpy(out->local, at + 3, sizeof out->local);
      break;
    case OP_CAPABILITY:
      if (length_of(at) >= 2) note_capability(at[1], out);
      break;
    case OP_DECORATE: note_decoration(r, at); break;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
    case OP_TYPE_STRUCT:
    case OP_TYPE_POINTER: note_made(r, at, 1); break;
    case OP_VARIABLE:
    case OP_CONSTANT:
    case OP_SPEC_CONSTANT:
    case OP_COMPOSITE:
    case OP_SPEC_COMPOSITE: note_made(r, at, 2); break;
    default: break;
    }
  }
  return found ? HEDDLE_OK : p_fail(err, HEDDLE_ENOTFOUND, 0, "SPIR-V without an entry point '%.200s'", entry);
}

/* The number that an id is; 0: it is computed. Specialisation constants have their defaults. */
static uint32_t constant(const reader *r, uint32_t number) {
  const uint32_t *at = made_by(r, number, OP_CONSTANT, 4);
  if (at == NULL) at = made_by(r, number, OP_SPEC_CONSTANT, 4);
  return at != NULL ? at[3] : 0;
}

/* A constant of three numbers that is decorated so is stronger than the execution mode. */
static void read_group_size(const reader *r, uint32_t number, vlk_interface *out) {
  const uint32_t *at = made_by(r, number, OP_COMPOSITE, 6);
  if (at == NULL) at = made_by(r, number, OP_SPEC_COMPOSITE, 6);
  for (int d = 0; d < 3; d++) out->local[d] = at != NULL ? constant(r, at[3 + d]) : 0;
}

/* Where member k of a struct lies; UINT32_MAX where that is not said. */
static uint32_t offset_of(const reader *r, uint32_t type, uint32_t k) {
  for (uint64_t i = HEAD; i < r->count; i += length_of(&r->words[i])) {
    const uint32_t *at = &r->words[i];
    if (op_of(at) == OP_MEMBER_DECORATE && length_of(at) >= 5 && at[1] == type && at[2] == k && at[3] == IS_OFFSET)
      return at[4];
  }
  return UINT32_MAX;
}

static heddle_status read_block(const reader *r, const uint32_t *type, vlk_interface *out, heddle_error *err) {
  if (out->block_bytes > 0) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V with scalars in two blocks");
  if (length_of(type) < 3) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V with a block that holds nothing");
  for (uint32_t k = 0; k + 2 < length_of(type); k++) {
    const uint32_t *member = made_by(r, type[2 + k], OP_TYPE_INT, 3);
    if (member == NULL) member = made_by(r, type[2 + k], OP_TYPE_FLOAT, 3);
    const uint32_t bytes = member != NULL ? member[2] / 8 : 0, offset = offset_of(r, type[1], k);
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V whose scalar %u is neither a whole number nor a float", k);
    if (k >= VLK_MOST_SCALARS || offset > VLK_BLOCK_BYTES - 8)
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V whose scalar %u is beyond what a launch passes", k);
    out->scalars[out->n_scalars++] = (vlk_scalar){offset, bytes};
    const uint32_t end = (offset + bytes + 3) / 4 * 4;
    if (end > out->block_bytes) out->block_bytes = end;
  }
  return HEDDLE_OK;
}

static heddle_status read_variable(const reader *r, const id *x, vlk_interface *out, heddle_error *err) {
  const uint32_t *at = x->made, *pointer = made_by(r, at[1], OP_TYPE_POINTER, 4);
  const uint32_t kind = at[3];
  const uint32_t *type = pointer != NULL ? made_by(r, pointer[3], OP_TYPE_STRUCT, 2) : NULL;
  if (kind != CLASS_UNIFORM && kind != CLASS_PUSH && kind != CLASS_STORAGE) return HEDDLE_OK;
  if (type == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V with a buffer that is no struct");
  if (kind == CLASS_PUSH) return read_block(r, type, out, err);
  if (!x->has_binding || x->set != 0 || x->binding >= VLK_MOST_BINDINGS)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V with a buffer at set %u, binding %u; set 0 has bindings to %d",
                  x->set, x->binding, VLK_MOST_BINDINGS - 1);
  if (kind == CLASS_STORAGE || r->ids[type[1]].is_buffer_block) {
    for (uint32_t i = 0; i < out->n_buffers; i++)
      if (out->buffers[i] == x->binding)
        return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V with two buffers at binding %u", x->binding);
    out->buffers[out->n_buffers++] = x->binding;
    return HEDDLE_OK;
  }
  out->uniform = true;
  out->uniform_binding = x->binding;
  return read_block(r, type, out, err);
}

heddle_status vlk_spirv_read(const heddle_host *host, const uint32_t *words, uint64_t count, const char *entry,
                             vlk_interface *out, heddle_error *err) {
  reader r = {.words = words, .count = count, .bound = words[3]};
  *out = (vlk_interface){.version = words[1], .local = {1, 1, 1}};
  r.ids = host->alloc(host->ctx, ((uint64_t)r.bound + 1) * sizeof *r.ids, 16);
  if (r.ids == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory to read SPIR-V");
  memset(r.ids, 0, ((size_t)r.bound + 1) * sizeof *r.ids);
  heddle_status s = scan(&r, entry, out, err);
  for (uint32_t i = 0; i < r.bound && s == HEDDLE_OK; i++) {
    if (r.ids[i].is_group_size) read_group_size(&r, i, out);
    if (made_by(&r, i, OP_VARIABLE, 4) != NULL) s = read_variable(&r, &r.ids[i], out, err);
  }
  for (uint32_t i = 0; i < out->n_buffers && s == HEDDLE_OK; i++)
    if (out->uniform && out->buffers[i] == out->uniform_binding)
      s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "SPIR-V with two buffers at binding %u", out->uniform_binding);
  host->free(host->ctx, r.ids);
  return s;
}
