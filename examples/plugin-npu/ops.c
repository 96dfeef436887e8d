/* Operators: an op is a compiled program with its constants in DRAM; a launch is a copy of it there whose addresses are
 * those of the buffers that it was bound to. */
#include "npu.h"
#include "program.h"

struct heddle_pop {
  heddle_pdevice *dev;
  npu_program program;
  heddle_pbuffer *constants;
  uint32_t n_inputs, n_outputs;
  uint64_t bytes[]; /* of the inputs, 0 for those that are absorbed; then of the outputs */
};

struct heddle_plaunch {
  heddle_pdevice *dev;
  heddle_pstream *stream;
  heddle_pbuffer *code;
  uint64_t n_code;
};

void npu_launch_program(const heddle_plaunch *launch, uint64_t *address, uint64_t *n) {
  *address = launch->code->at;
  *n = launch->n_code;
}

static void launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->dev;
  npu_dram_give(launch->code);
  npu_stream_give(launch->stream);
  atomic_fetch_sub(&dev->live_objects, 1);
  dev->host->free(dev->host->ctx, launch);
}

static void free_op(heddle_pop *op) {
  npu_dram_give(op->constants);
  npu_program_free(&op->program);
  op->dev->host->free(op->dev->host->ctx, op);
}

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  atomic_fetch_sub(&op->dev->live_objects, 1);
  free_op(op);
}

/* ---------------------------------------------------------------- query and prepare */

static heddle_status check_index(uint32_t index, heddle_error *err) {
  return index == 0 ? HEDDLE_OK : p_fail(err, HEDDLE_ENODEV, 0, "npu:%u: there is one device, npu:0", index);
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  npu_plan plan;
  const heddle_host *host = self->host;
  heddle_status s = check_index(index, err);
  if (s == HEDDLE_OK) s = npu_plan_make(host, region, &plan, err);
  if (s != HEDDLE_OK) return s;
  uint32_t *flags = npu_new(host, (region->n_inputs + 1) * sizeof *flags);
  if (flags == NULL) s = p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory to query an operator");
  for (uint32_t i = 0; i < region->n_inputs && s == HEDDLE_OK; i++)
    flags[i] = npu_plan_absorbs(&plan, region, region->inputs[i]) ? HEDDLE_INPUT_ABSORBED : 0;
  const heddle_poffer answer = {.struct_size = sizeof answer,
                                .input_flags = flags,
                                .workspace_bytes = plan.workspace_bytes,
                                .workspace_align = NPU_ALIGNMENT,
                                .cost_ns = plan.cost_ns};
  if (s == HEDDLE_OK) s = offer(sink, &answer, err);
  host->free(host->ctx, flags);
  npu_plan_free(&plan);
  return s;
}

static heddle_status op_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                  heddle_propose_fn propose, void *sink, heddle_error *err) {
  heddle_status s = check_index(index, err);
  return s == HEDDLE_OK ? npu_propose(self->host, region, propose, sink, err) : s;
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  static const char *const ops[] = {"MaxPool", "QLinearConv", "QLinearMatMul"};
  (void)self;
  heddle_status s = check_index(index, err);
  for (size_t i = 0; i < sizeof ops / sizeof ops[0] && s == HEDDLE_OK; i++)
    s = list(sink, "", ops[i], 13, 28, "int8, uint8", err);
  return s;
}

/* What bind has to find: bytes of each operand that needs a buffer. */
static void set_operands(heddle_pop *op, const npu_plan *plan, const heddle_pregion *region) {
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (!npu_plan_absorbs(plan, region, region->inputs[i]))
      region_value_bytes(region_value(region, region->inputs[i]), &op->bytes[i]);
  for (uint32_t i = 0; i < op->n_outputs; i++)
    region_value_bytes(region_value(region, region->outputs[i]), &op->bytes[op->n_inputs + i]);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  const uint64_t operands = (uint64_t)region->n_inputs + region->n_outputs;
  npu_plan plan;
  heddle_status s = npu_check(dev, err);
  if (s == HEDDLE_OK && offer != 0) s = p_fail(err, HEDDLE_EINVAL, 0, "npu:0: offer %u was not made", offer);
  if (s == HEDDLE_OK) s = npu_plan_make(dev->host, region, &plan, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = npu_new(dev->host, sizeof *op + operands * sizeof op->bytes[0]);
  if (op == NULL) {
    npu_plan_free(&plan);
    return p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for an operator");
  }
  op->dev = dev;
  op->program.host = dev->host;
  op->n_inputs = region->n_inputs;
  op->n_outputs = region->n_outputs;
  set_operands(op, &plan, region);
  s = npu_compile(&plan, &op->program, err);
  npu_plan_free(&plan);
  if (s == HEDDLE_OK) s = npu_dram_take(dev, op->program.constant_bytes, NPU_ALIGNMENT, &op->constants, err);
  if (s != HEDDLE_OK) {
    free_op(op);
    return s;
  }
  if (op->program.constant_bytes > 0) memcpy(op->constants->data, op->program.constants, op->program.constant_bytes);
  atomic_fetch_add(&dev->live_objects, 1);
  *out = op;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- bind and run */

/* Checks that a slice lies in DRAM and is large enough; gives its address there. */
static heddle_status address_of(const heddle_pop *op, const heddle_pslice *slice, uint64_t bytes, const char *what,
                                uint64_t *out, heddle_error *err) {
  uint8_t *data;
  *out = 0;
  if (bytes == 0) return HEDDLE_OK;
  if (slice->bytes < bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "npu:0: %s of %llu bytes is given %llu", what, (unsigned long long)bytes,
                  (unsigned long long)slice->bytes);
  heddle_status s = npu_bytes(op->dev, slice->buffer, HEDDLE_MEMORY_DEVICE, slice->offset, bytes, what, &data, err);
  if (s == HEDDLE_OK) *out = slice->buffer->at + slice->offset;
  return s;
}

/* addresses: constants, workspace, then input k and output k in turn, as NPU_OPERAND_* number them. */
static heddle_status find_addresses(const heddle_pop *op, const heddle_pbind *operands, uint64_t *addresses,
                                    heddle_error *err) {
  addresses[NPU_OPERAND_CONSTANTS] = op->constants->at;
  heddle_status s = address_of(op, &operands->workspace, op->program.workspace_bytes, "a workspace",
                               &addresses[NPU_OPERAND_WORKSPACE], err);
  for (uint32_t i = 0; i < op->n_inputs && s == HEDDLE_OK; i++)
    s = address_of(op, &operands->inputs[i], op->bytes[i], "an input", &addresses[NPU_OPERAND_INPUT(i)], err);
  for (uint32_t i = 0; i < op->n_outputs && s == HEDDLE_OK; i++)
    s = address_of(op, &operands->outputs[i], op->bytes[op->n_inputs + i], "an output",
                   &addresses[NPU_OPERAND_OUTPUT(i)], err);
  return s;
}

static bool has_box(const npu_instr *i) {
  return i->op == NPU_OP_STORE || (i->op >= NPU_OP_LOAD_INPUT && i->op <= NPU_OP_LOAD_ACC8);
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  const heddle_host *host = op->dev->host;
  const uint32_t most = op->n_inputs > op->n_outputs ? op->n_inputs : op->n_outputs;
  heddle_status s = npu_check(op->dev, err);
  if (s == HEDDLE_OK && (stream == NULL || stream->dev != op->dev || operands->n_inputs != op->n_inputs ||
                         operands->n_outputs != op->n_outputs))
    s = p_fail(err, HEDDLE_EINVAL, 0,
               "npu:0: an operator of %u inputs and %u outputs is bound to others, or to a stream of another device",
               op->n_inputs, op->n_outputs);
  if (s != HEDDLE_OK) return s;
  uint64_t *addresses = npu_new(host, (NPU_OPERAND_FIRST + 2 * (uint64_t)most) * sizeof *addresses);
  heddle_plaunch *launch = npu_new(host, sizeof *launch);
  if (addresses == NULL || launch == NULL) s = p_fail(err, HEDDLE_ENOMEM, 0, "npu:0: no memory for a launch");
  if (s == HEDDLE_OK) s = find_addresses(op, operands, addresses, err);
  if (s == HEDDLE_OK)
    s = npu_dram_take(op->dev, op->program.n_code * sizeof(npu_instr), NPU_ALIGNMENT, &launch->code, err);
  if (s == HEDDLE_OK && (s = npu_stream_take(stream, err)) != HEDDLE_OK) npu_dram_give(launch->code);
  if (s != HEDDLE_OK) {
    host->free(host->ctx, launch);
    host->free(host->ctx, addresses);
    return s;
  }
  for (uint64_t k = 0; k < op->program.n_code; k++) {
    npu_instr i = op->program.code[k];
    if (has_box(&i)) i.u.box.base += addresses[i.u.box.operand];
    memcpy(launch->code->data + k * sizeof i, &i, sizeof i);
  }
  host->free(host->ctx, addresses);
  launch->dev = op->dev;
  launch->stream = stream;
  launch->n_code = op->program.n_code;
  atomic_fetch_add(&op->dev->live_objects, 1);
  *out = launch;
  return HEDDLE_OK;
}

static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  const npu_cmd cmd = {.kind = NPU_CMD_RUN, .launch = launch};
  return npu_push(launch->stream, &cmd, err);
}

const heddle_op_table npu_op_table = {
    .struct_size = sizeof npu_op_table,
    .launch_free = launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = op_bind,
    .run = op_run,
    .partition = op_partition,
    .list = op_list,
};
