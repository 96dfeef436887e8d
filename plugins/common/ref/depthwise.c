/* Conv of one input channel a group. A unit is a channel of an image of the result; its input is copied into scratch
 * memory with its padding, so that no tap needs a look at where it is. */
#include "lines.h"
#include "ref_op.h"

enum { LINES = 8 }; /* of the result that are computed at once */

/* Planes, rows and columns of the padded channel, and columns of one phase of it (lines.h). */
static int64_t padded(const ref_window *w, int d) {
  return (w->out[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1;
}

static int64_t phase_of(const ref_window *w) {
  return (padded(w, 2) - 1) / w->stride[2] + 1;
}

/* Floats of scratch memory; 0: the kernel below is not for this one. */
int64_t ref_depthwise_floats(const ref_conv *c) {
  const ref_window *w = &c->window;
  if (c->in_channels != 1 || ref_product(w->out, REF_SPATIAL) < 1) return 0;
  const int64_t sizes[] = {padded(w, 0), padded(w, 1), phase_of(w), w->stride[2]}, floats = ref_product(sizes, 4);
  return floats < INT64_C(1) << 24 ? floats + REF_LINE_SLACK : 0;
}

static void copy_padded(const ref_window *w, const float *in, float *to) {
  const int64_t planes = padded(w, 0), rows = padded(w, 1), columns = padded(w, 2), step = w->stride[2],
                phase = phase_of(w);
  const int64_t left = w->pad[2] < columns ? w->pad[2] : columns;
  const int64_t have = columns - left < w->in[2] ? columns - left : w->in[2];
  for (int64_t k = 0; k < planes * rows; k++, to += step * phase) {
    const int64_t z = k / rows - w->pad[0], y = k % rows - w->pad[1];
    const bool inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
    const float *row = inside ? in + (z * w->in[1] + y) * w->in[2] : NULL;
    memset(to, 0, (size_t)(step * phase) * sizeof *to);
    if (!inside || have <= 0) continue;
    if (step == 1) memcpy(to + left, row, (size_t)have * sizeof *to);
    else if (step == 2)
      ref_line_split(row, have, to + left % 2 * phase + left / 2, to + (left + 1) % 2 * phase + (left + 1) / 2);
    else
      for (int64_t x = 0, at = left % step, in_phase = left / step; x < have; x++) {
        to[at * phase + in_phase] = row[x];
        if (++at == step) at = 0, in_phase++;
      }
  }
  memset(to, 0, REF_LINE_SLACK * sizeof *to);
}

void ref_depthwise_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                       uint64_t last) {
  const ref_conv *c = &op->u.conv;
  const ref_window *w = &c->window;
  const int64_t size = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  const int64_t taps = ref_product(w->kernel, REF_SPATIAL), step = w->stride[2], phase = phase_of(w),
                plane = padded(w, 1) * step * phase, channels = c->groups * c->out_channels;
  const float *bias = (op->present & 4) != 0 ? inputs[op->slot[2]] : NULL;
  int64_t work = 0;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t at = (int64_t)unit, channel = at % channels;
    ref_taps t = {.w = (const float *)inputs[op->slot[1]] + channel * taps,
                  .planes = w->kernel[0],
                  .plane = w->dilation[0] * plane,
                  .rows = w->kernel[1],
                  .columns = w->kernel[2],
                  .row = w->dilation[1] * step * phase,
                  .tap = w->dilation[2] / step + w->dilation[2] % step * phase,
                  .turn = w->dilation[2] % step,
                  .back = 1 - step * phase,
                  .step = step,
                  .n = w->out[2],
                  .in_line = w->stride[1] * step * phase,
                  .out_line = w->out[2],
                  .bias = bias != NULL ? bias[channel] : 0};
    float *out = (float *)outputs[0] + at * positions;
    if (ref_tick(op, &work, plane * padded(w, 0))) return;
    copy_padded(w, size > 0 ? (const float *)inputs[op->slot[0]] + at / c->out_channels * size : NULL, workspace);
    for (int64_t z = 0; z < w->out[0]; z++) {
      const float *in = (const float *)workspace + z * w->stride[0] * plane;
      for (int64_t y = 0; y < w->out[1]; y += t.lines) {
        t.lines = w->out[1] - y < LINES ? w->out[1] - y : LINES;
        ref_line_taps(&t, in + y * t.in_line, out + (z * w->out[1] + y) * t.out_line);
        if (ref_tick(op, &work, t.lines * taps * w->out[2] / 4)) return;
      }
    }
  }
}
