/* Lines of what is left: quantisation, images, signals, losses and other rare operators. */
#include "op_case.h"

#define F "fdhb"

/* clang-format off */
static const op_line lines[] = {
  {"AffineGrid", "fd", "T[2,2,3] l=2,1,4,5 > T[2,4,5,2]", 20},
  {"AffineGrid", "f", "T[2,2,3] l=2,1,4,5 > T[2,4,5,2] ; align_corners=1", 20},
  {"AffineGrid", "f", "T[2,3,4] l=2,1,3,4,5 > T[2,3,4,5,3]", 20},
  {"BlackmanWindow", "f", "l#9 > f[9] ; periodic=0", 17}, {"HammingWindow", "f", "l#9 > f[9] ; periodic=0", 17},
  {"HannWindow", "f", "l#9 > f[9]", 17},
  {"BlackmanWindow", "f", "l#9 > f[9]", 17}, {"HammingWindow", "f", "l#9 > f[9]", 17}, {"HannWindow", "f", "l#9 > f[9] ; periodic=0", 17},
  {"DequantizeLinear", "aAi", "T[3,37]{0,100} f#0.05 T#0 > f[3,37]", 13},
  {"DequantizeLinear", "aA", "T[3,4,5]{0,100} f[4]{0.01,0.1} T[4] > f[3,4,5] ; axis=1", 13},
  {"DequantizeLinear", "aA", "T[4,4,4]{0,100} f[4]{0.01,0.1} T[4] > f[4,4,4] ; axis=2", 13},
  {"DequantizeLinear", "aA", "T[3,6]{0,100} f[3,2]{0.01,0.1} T[3,2] > f[3,6] ; axis=1 block_size=3", 21},
  {"DynamicQuantizeLinear", "f", "f[3,37] > A[3,37] f[] A[]", 13},
  {"GridSample", "fd", "T[1,2,5,6] T[1,3,4,2]{-0.9,0.9} > T[1,2,3,4]", 16},
  {"GridSample", "f", "T[1,2,5,6] T[1,3,4,2]{-1.6,1.6} > T[1,2,3,4] ; padding_mode'border", 16},
  {"GridSample", "f", "T[1,2,5,6] T[1,3,4,2]{-1.6,1.6} > T[1,2,3,4] ; padding_mode'reflection align_corners=1", 16},
  {"GridSample", "f", "T[1,2,5,6] T[1,3,4,2]{-1.6,1.6} > T[1,2,3,4] ; mode'nearest", 16},
  {"MelWeightMatrix", "f", "l#8 l#16 l#8000 f#20 f#4000 > f[9,8]", 17},
  {"NegativeLogLikelihoodLoss", "fd", "T[5,4]{-3,0} l[5]{0,3} > T[]", 13},
  {"NegativeLogLikelihoodLoss", "f", "T[5,4]{-3,0} l[5]{0,3} T[4]{0.1,1} > T[5] ; reduction'none ignore_index=2", 13},
  {"NegativeLogLikelihoodLoss", "f", "T[2,4,3]{-3,0} l[2,3]{0,3} T[4]{0.1,1} > T[] ; reduction'sum", 13},
  {"NonMaxSuppression", "f", "f[1,4,4]{0,1}! f[1,2,4]{0,1}! > l[0,3]", 13},
  {"QuantizeLinear", "aA", "f[3,37]{-2,6} f#0.05 T#4 > T[3,37]", 13},
  {"QuantizeLinear", "aA", "f[3,4,5] f[4]{0.02,0.1} T[4] > T[3,4,5] ; axis=1", 13},
  {"QuantizeLinear", "aA", "f[4,4,4]{-2,6} f[4]{0.02,0.1} T[4] > T[4,4,4] ; axis=2", 13},
  {"QuantizeLinear", "aA", "f[3,6]{-2,6} f[3,2]{0.02,0.1} T[3,2] > T[3,6] ; axis=1 block_size=3", 21},
  {"Resize", "fhbdaAil", "T[1,2,5,6] - f=1,1,2,2 > T[1,2,10,12]", 13},
  {"Resize", "fd", "T[1,2,5,6] - f=1,1,2,2 > T[1,2,10,12] ; mode'linear", 13},
  {"Resize", "f", "T[1,2,5,6] - f=1,1,2,2 > T[1,2,10,12] ; mode'cubic", 13},
  {"Resize", "f", "T[1,2,6,8] - - l=1,2,3,4 > T[1,2,3,4] ; mode'linear coordinate_transformation_mode'align_corners", 13},
  {"Resize", "f", "T[1,2,5,6] - - l=1,2,9,7 > T[1,2,9,7] ; mode'linear coordinate_transformation_mode'asymmetric", 13},
  {"Resize", "f", "T[1,2,6,8] - - l=1,2,3,4 > T[1,2,3,4] ; nearest_mode'floor coordinate_transformation_mode'asymmetric", 13},
  {"Resize", "f", "T[1,2,6,7] - - l=1,2,4,5 > T[1,2,4,5] ; nearest_mode'ceil", 13},
  {"RoiAlign", "f", "T[1,2,8,8] T[2,4]{2,14} l[2]{0,0} > T[2,2,2,3] ; output_height=2 output_width=3 spatial_scale~0.5 sampling_ratio=2", 16},
  {"RoiAlign", "fd", "T[1,2,8,8] T[2,4]{1,6} l[2]{0,0} > T[2,2,2,3] ; output_height=2 output_width=3", 16},
  {"RotaryEmbedding", "fd", "T[1,2,4,8] T[1,4,4] T[1,4,4] > T[1,2,4,8]", 23},
  {"RotaryEmbedding", "f", "T[1,2,4,8] T[16,4] T[16,4] l[1,4]{0,15} > T[1,2,4,8]", 23},
  {"Rotary", "fdhb", "T[2,3,4,8] T[2,1,4,8] T[4,8] > T[2,3,4,8]", 0},
  {"Rotary", "f", "T[2,4,3,6] T[1,4,1,6] T[4,1,1] > T[2,4,3,6] ; interleaved=1 half=3", 0},
  {"Rotary", "fh", "T[2,4,3,6] T[4,1,3] T[4,3,3] > T[2,4,3,6] ; half=3", 0},
  {"SoftmaxCrossEntropyLoss", "f", "T[5,4] l[5]{0,3} T[4]{0.1,1} > T[5] ; reduction'none ignore_index=2", 13},
  {"SoftmaxCrossEntropyLoss", "f", "T[2,4,3] l[2,3]{0,3} > T[] T[2,4,3] ; reduction'sum", 13},
  {"SoftmaxCrossEntropyLoss", "fd", "T[5,4] l[5]{0,3} > T[]", 13},
  {"TfIdfVectorizer", "il", "T[1,12]{0,7} > f[1,7] ; mode'TF min_gram_length=2 max_gram_length=2 max_skip_count=0 "
   "ngram_counts:0,4 ngram_indexes:0,1,2,3,4,5,6 pool_int64s:2,3,5,4,5,6,7,8,6,7", 13},
};
/* clang-format on */

const op_table op_rare = {lines, sizeof lines / sizeof lines[0]};
