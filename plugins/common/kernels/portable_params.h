/* The parameters of the portable texts (portable.cl), which GLSL reads too: members are K_I64, or arrays of them, and
 * behind these floats, an even number of them. K_I64 is 32 bits there. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PORTABLE_PARAMS_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PORTABLE_PARAMS_H

/* Picking elements and putting them somewhere: what the members mean, each kernel of select.cl says. */
K_STRUCT(k_select, K_I64 count; K_I64 n; K_I64 inner; K_I64 axis; K_I64 mode; K_I64 wide; K_I64 rows; K_I64 dims;
         K_I64 from[K_DIMS]; K_I64 shape[K_DIMS];)

/* y[outer, i, inner] = x[outer, index[i], inner], counted in words of w1 to w8. count: elements of the result. */
K_STRUCT(k_gather, K_I64 count; K_I64 indices; K_I64 axis; K_I64 inner;)

/* mode: K_PAD_*. words: of an element. Dimensions that are not padded are joined; the last is of words. */
#define K_PAD_FILL 0
#define K_PAD_REFLECT 1
#define K_PAD_EDGE 2
K_STRUCT(k_pad, K_I64 count; K_I64 dims; K_I64 words; K_I64 mode; K_I64 in_[K_DIMS]; K_I64 out_[K_DIMS];
         K_I64 before[K_DIMS];)

/* A window over planes. include_pad: what AveragePool divides by; columns: see max_pool_where. */
K_STRUCT(k_pool, K_I64 count; K_I64 include_pad; K_I64 columns; K_I64 in_[K_SPATIAL]; K_I64 out_[K_SPATIAL];
         K_I64 window[K_SPATIAL]; K_I64 stride[K_SPATIAL]; K_I64 dilation[K_SPATIAL]; K_I64 pad[K_SPATIAL];
         K_I64 pad_end[K_SPATIAL];)

/* Place i of dimension d has the row of cells at[d] + i * (1 + taps[d]): the first element, and a weight for each that
 * it is made of. Without taps it is element i. sums: the product of the taps. low, top: of integers the least, and one more
 * than the greatest. */
K_STRUCT(k_resize, K_I64 count; K_I64 sums; K_I64 in_[K_DIMS]; K_I64 out_[K_DIMS]; K_I64 taps[K_DIMS]; K_I64 at[K_DIMS];
         float outside; float low; float top; float unused;)

/* Lines of n elements, inner apart: line r begins at (r / inner) * inner * n + r % inner. Or results of elements of a box,
 * whose dimensions are kept ones and then those that are gone through. */
K_STRUCT(k_lines, K_I64 count; K_I64 n; K_I64 inner; K_I64 mode; K_I64 reverse; K_I64 exclusive; K_I64 kept; K_I64 dims;
         K_I64 size[K_DIMS]; K_I64 step[K_DIMS]; float epsilon; float unused;)

/* Lines that are side by side, of a tensor of dims dimensions; step: of the scale. */
K_STRUCT(k_scaled, K_I64 count; K_I64 n; K_I64 dims; K_I64 size[K_DIMS]; K_I64 step[K_DIMS]; float epsilon;
         float unused;)

/* Losses: see losses.cl. entropy: labels are of what a softmax comes before; ignored: a label that counts nothing, where
 * ignores. */
K_STRUCT(k_loss, K_I64 count; K_I64 n; K_I64 inner; K_I64 mode; K_I64 wide; K_I64 ignores; K_I64 ignored;
         K_I64 entropy;)

/* mode: several scales; block: places of one of blocks, 0 where each place has its own. rounding: of the quotient, 1 to
 * float32, 2 float16, 3 bfloat16, else to its operands' type. */
K_STRUCT(k_quantize, K_I64 count; K_I64 n; K_I64 inner; K_I64 mode; K_I64 block; K_I64 blocks; K_I64 least; K_I64 most;
         K_I64 rounding;)

/* To and from elements of 8 bits and less (narrow.cl). format: of narrow_format. */
#define K_FORMAT 7
K_STRUCT(k_narrow, K_I64 count; K_I64 saturate; K_I64 rounds; K_I64 format[K_FORMAT];)

/* Random numbers: see random.cl. The key's halves; numbers as two floats whose sum each is. */
K_STRUCT(k_random, K_I64 count; K_I64 key_low; K_I64 key_high; K_I64 n; K_I64 samples; K_I64 wide; float mean;
         float mean_rest; float scale; float scale_rest;)

/* BatchNormalization: see batch.cl. count: items; batch images of channels planes. */
K_STRUCT(k_batch, K_I64 count; K_I64 channels; K_I64 batch; K_I64 plane; K_I64 chunks; K_I64 mode; float epsilon;
         float epsilon_rest; float momentum; float momentum_rest;)

/* Any operator whose geometry is in a table (plan_general.h) as the general reference kernel's setup leaves it. has: bit k,
 * operand k is there; bit 16 + k, result k is wanted. */
K_STRUCT(k_general, K_I64 count; K_I64 has; K_I64 mode; K_I64 step;)

/* DFT and STFT: see signal.cl. */
K_STRUCT(k_signal, K_I64 count; K_I64 points; K_I64 size; K_I64 bins; K_I64 inner; K_I64 step; K_I64 frames;
         K_I64 mode;)

/* The table's 32-bit words: integers; numbers, each as two floats whose sum it is; for each operand and each result its
 * dimensions, how many they are, and how many elements it has. */
#define K_G_NUMBERS 40
#define K_G_IN 72
#define K_G_OUT 152
#define K_G_VALUE 10
#define K_G_WORDS 192
#define K_G_MORE 64 /* behind them, for what a plan adds */

#endif
