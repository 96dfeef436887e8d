/* The plugin's layouts from the host's side: what op_layout.h says. */
#include "op_layout.h"

#include <stdio.h>
#include <string.h>

static heddle_pvalue value_of(const op_operand *o, heddle_layout layout) {
  return (heddle_pvalue){.struct_size = sizeof(heddle_pvalue),
                         .dtype = op_dtype(o->type),
                         .shape = o->shape,
                         .layout = layout,
                         .ndim = o->ndim};
}

uint64_t op_layout_bytes(kit *k, const op_operand *o, heddle_layout layout, bool fast) {
  uint64_t bytes = o->bytes, align = 1;
  if (layout == 0) return bytes;
  if (!k->t.has_layout || k->t.layout.bytes == NULL || k->t.layout.pack == NULL)
    kit_fail(k, "query offered layout %#llx, and the plugin has no table of layouts", (unsigned long long)layout);
  const heddle_pvalue v = value_of(o, layout);
  kit_ok(k, k->t.layout.bytes(k->instance, k->index, &v, &bytes, &align, &k->err),
         "layout.bytes of a layout that query offered");
  if (!fast && bytes < o->bytes)
    kit_fail(k, "layout.bytes of layout %#llx gives %llu bytes for a tensor of %llu", (unsigned long long)layout,
             (unsigned long long)bytes, (unsigned long long)o->bytes);
  if (align == 0 || (align & (align - 1)) != 0)
    kit_fail(k, "layout.bytes of layout %#llx gives the alignment %llu, no power of two", (unsigned long long)layout,
             (unsigned long long)align);
  return bytes;
}

void op_pack(kit *k, const op_operand *o, heddle_layout layout, void *to, uint64_t bytes) {
  heddle_pvalue v = value_of(o, layout);
  v.data = o->raw;
  v.data_bytes = o->bytes;
  kit_ok(k, k->t.layout.pack(k->instance, k->index, &v, to, bytes, &k->err),
         "layout.pack of a layout that query offered");
}

bool op_reorder(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_operand *o, heddle_layout from,
                heddle_layout to, heddle_pbuffer *src, uint64_t src_offset, heddle_pbuffer *dst, uint64_t dst_offset) {
  static op_region r; /* large, and one case a process */
  static op_offers offers;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  heddle_pbuffer *scratch = NULL;
  memset(&r, 0, sizeof r);
  r.values[0] = value_of(o, from);
  r.values[1] = value_of(o, to);
  r.in[0] = r.node_in[0] = 0;
  r.out[0] = r.node_out[0] = 1;
  r.node = (heddle_pnode){.struct_size = sizeof r.node,
                          .opset = 13,
                          .domain = "heddle",
                          .op = "Reorder",
                          .name = "kit_reorder",
                          .since_version = 1};
  r.node.attrs.stride = sizeof r.attrs[0];
  r.node.inputs = r.node_in;
  r.node.outputs = r.node_out;
  r.node.n_inputs = r.node.n_outputs = 1;
  r.region =
      (heddle_pregion){.struct_size = sizeof r.region, .inputs = r.in, .outputs = r.out, .n_inputs = 1, .n_outputs = 1};
  r.region.nodes = (heddle_parray){&r.node, 1, sizeof r.node};
  r.region.values = (heddle_parray){r.values, 2, sizeof r.values[0]};
  const heddle_status s = op_query(k, &r, &offers);
  if (s == HEDDLE_EUNSUPPORTED) return false;
  kit_ok(k, s, "op.query of Reorder, which a plugin with layouts takes");
  if (offers.wrong[0] != '\0') kit_fail(k, "Reorder: %s", offers.wrong);
  kit_ok(k, k->t.op.prepare(dev, &r.region, 0, &op, &k->err), "op.prepare of Reorder");
  heddle_pslice in = {src, src_offset, op_layout_bytes(k, o, from, true)},
                out = {dst, dst_offset, op_layout_bytes(k, o, to, true)};
  heddle_pbind operands = {sizeof operands, 0, &in, &out, 1, 1, {NULL, 0, 0}};
  if (offers.all[0].workspace_bytes > 0) {
    scratch = kit_buffer(k, dev, HEDDLE_MEMORY_DEVICE, offers.all[0].workspace_bytes);
    operands.workspace = (heddle_pslice){scratch, 0, offers.all[0].workspace_bytes};
  }
  kit_ok(k, k->t.op.bind(op, stream, &operands, &launch, &k->err), "op.bind of Reorder");
  kit_ok(k, k->t.op.run(launch, &k->err), "op.run of Reorder");
  op_sync(k, stream);
  k->t.op.launch_free(launch);
  k->t.op.op_free(op);
  if (scratch != NULL) kit_free(k, dev, scratch);
  return true;
}

bool op_unpack(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_operand *o, heddle_layout layout,
               heddle_pbuffer *src, uint64_t offset, void *to) {
  heddle_pbuffer *plain = kit_buffer(k, dev, HEDDLE_MEMORY_DEVICE, o->bytes);
  const bool taken = op_reorder(k, dev, stream, o, layout, 0, src, offset, plain, 0);
  if (taken) kit_get(k, stream, plain, 0, to, o->bytes);
  kit_free(k, dev, plain);
  return taken;
}
