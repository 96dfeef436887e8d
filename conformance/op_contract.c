/* Lines of the operators that add up products: matrices, convolutions, attention, and their quantised forms. Sizes lie on
 * both sides of the tiles that kernels work in. */
#include "op_case.h"

#define F "fdhb"
#define N "fdhbasilASIL"

/* clang-format off */
static const op_line lines[] = {
  {"MatMul", N, "T[5,7] T[7,3] > T[5,3]", 13}, {"MatMul", "fh", "T[2,3,9] T[2,9,17] > T[2,3,17]", 13},
  {"MatMul", "fh", "T[4,2,5,6] T[6,3] > T[4,2,5,3]", 13}, {"MatMul", "f", "T[2,1,5,6] T[3,6,4] > T[2,3,5,4]", 13},
  {"MatMul", "fd", "T[7] T[7] > T[]", 13}, {"MatMul", "f", "T[7] T[2,7,3] > T[2,3]", 13},
  {"MatMul", "f", "T[3,7] T[7] > T[3]", 13}, {"MatMul", "f", "T[1,1] T[1,1] > T[1,1]", 13},
  {"MatMul", "f", "T[9,4]? T[4,3] > T[9,3]", 13}, {"Gemm", "f", "T[9,4] T[4,3] T[9,3]? > T[9,3]", 13},
  {"MatMul", "f", "T[17,17] T[17,17] > T[17,17]", 13}, {"MatMul", "f", "T[3,3,3] T[3,3,3] > T[3,3,3]", 13},
  {"MatMul", "f", "T[0,7] T[7,3] > T[0,3]", 13}, {"MatMul", "f", "T[3,0] T[0,2] > T[3,2]", 13},
  {"MatMul", "fhb", "T[33,65] T[65,31] > T[33,31]", 13}, {"MatMul", "f", "T[1,129] T[129,67] > T[1,67]", 13},
  {"MatMul", "fhb", "T[3,1100] T[1100,5] > T[3,5]", 13}, {"MatMul", "f", "T[130,70] T[70,129] > T[130,129]", 13},
  {"Gemm", N, "T[5,7] T[7,3] T[5,3] > T[5,3]", 13}, {"Gemm", "fh", "T[5,7] T[7,3] > T[5,3]", 13},
  {"Gemm", "fh", "T[7,5] T[3,7] T[3] > T[5,3] ; transA=1 transB=1 alpha~0.5 beta~2", 13},
  {"Gemm", "f", "T[5,7] T[7,3] T[5,1] > T[5,3] ; beta~-0.25", 13}, {"Gemm", "f", "T[5,7] T[7,3] T[] > T[5,3]", 13},
  {"Gemm", "f", "T[9,9] T[9,9] T[9,9] > T[9,9] ; transA=1", 13}, {"Gemm", "f", "T[9,9] T[9,9] T[9] > T[9,9] ; transB=1", 13},
  {"Gemm", "f", "T[1,65] T[17,65] T[17] > T[1,17] ; transB=1", 13}, {"Gemm", "f", "T[0,7] T[7,3] T[3] > T[0,3]", 13},
  {"Gemm", "fh", "T[35,70] T[33,70] T[33] > T[35,33] ; transB=1", 13},
  {"Gemm", "f", "T[70,35] T[70,33] T[35,33] > T[35,33] ; transA=1", 13},
  {"Conv", F, "T[1,3,7,9] T[4,3,3,3] T[4] > T[1,4,5,7]", 13},
  {"Conv", "fh", "T[2,3,7,9] T[5,3,3,3] > T[2,5,7,9] ; pads:1,1,1,1", 13},
  {"Conv", "f", "T[2,4,9,8] T[6,2,3,2] T[6] > T[2,6,5,4] ; group=2 strides:2,2 pads:1,0,1,0", 13},
  {"Conv", "f", "T[1,6,9,9] T[6,1,3,3] T[6] > T[1,6,9,9] ; group=6 pads:1,1,1,1", 13},
  {"Conv", "f", "T[1,2,11,11] T[3,2,3,3] > T[1,3,7,7] ; dilations:2,2", 13},
  {"Conv", "f", "T[1,17,6,5] T[19,17,1,1] T[19] > T[1,19,6,5]", 13},
  {"Conv", "fh", "T[2,3,19] T[4,3,5] T[4] > T[2,4,8] ; strides:2", 13},
  {"Conv", "f", "T[1,2,5,6,7] T[3,2,2,3,2] T[3] > T[1,3,4,4,6]", 13},
  {"Conv", "f", "T[1,3,10,10] T[4,3,3,3] > T[1,4,5,5] ; auto_pad'SAME_UPPER strides:2,2", 13},
  {"Conv", "f", "T[3,3,3,3] T[3,3,3,3] T[3] > T[3,3,3,3] ; pads:1,1,1,1", 13},
  {"Conv", "f", "T[0,3,7,9] T[4,3,3,3] T[4] > T[0,4,5,7]", 13},
  {"Conv", "f", "T[1,16,13,17] T[32,16,3,3] T[32] > T[1,32,13,17] ; pads:1,1,1,1", 13},
  {"Conv", "f", "T[1,8,14,14] T[16,8,5,5] > T[1,16,14,14] ; pads:2,2,2,2", 13},
  {"Conv", "f", "T[1,3,33,35] T[8,3,7,7] T[8] > T[1,8,17,18] ; pads:3,3,3,3 strides:2,2", 13},
  {"ConvTranspose", "fhb", "T[1,3,5,6] T[3,4,3,3] T[4] > T[1,4,7,8]", 13},
  {"ConvTranspose", "f", "T[2,4,5,5] T[4,3,3,2] > T[2,6,9,10] ; group=2 strides:2,2 pads:1,0,1,0", 13},
  {"ConvTranspose", "f", "T[1,2,9] T[2,3,4] T[3] > T[1,3,21] ; strides:2 output_padding:1", 13},
  {"ConvTranspose", "f", "T[1,2,3,3,3] T[2,2,2,2,2] > T[1,2,4,4,4]", 13},
  {"ConvTranspose", "f", "T[1,2,5,5] T[2,3,3,3] > T[1,3,9,9] ; dilations:2,2", 13},
  {"ConvInteger", "aA", "T[1,3,6,7]{0,100} T[4,3,3,3]{0,100} > i[1,4,4,5]", 13},
  {"ConvInteger", "A", "T[1,2,6,7]{0,255} T[4,2,3,3]{0,255} T[] T[] > i[1,4,6,7] ; pads:1,1,1,1", 13},
  {"GroupQueryAttention", "fdhb", "T[1,3,32] T[1,3,16] T[1,3,16] T[1,2,5,8] T[1,2,5,8] i[1]{7,7} i#8 > T[1,3,32] T[1,2,8,8] "
   "T[1,2,8,8] ; num_heads=4 kv_num_heads=2", 0},
  {"GroupQueryAttention", "fd", "T[2,1,64] - - T[2,1,9,16] T[2,1,9,16] i[2]{8,8} i#9 T[9,8] T[9,8] > T[2,1,32] T[2,1,9,16] "
   "T[2,1,9,16] ; num_heads=2 kv_num_heads=1 do_rotary=1 local_window_size=4 softcap~3 smooth_softmax=1", 0},
  {"MatMulExperts", "fdhb", "T[3,20] T[4,9,20] - - i[3,2]{0,3} T[4,9] > T[3,2,9] ; K=20 N=9", 0},
  {"MatMulExperts", "fd", "T[2,3,16] T[3,35,16] - - i[2,3]{0,2} > T[2,3,35] ; K=16 N=35", 0},
  {"MatMulExperts", "fdhb", "T[3,40] A[2,5,20]{0,255} T[2,5,3] A[2,5,2]{0,255} i[3,2]{0,1} T[2,5] > T[3,2,5] ; K=40 N=5 bits=4 "
   "block_size=16", 0},
  {"MatMulExperts", "fh", "T[9,48] A[3,6,48]{0,255} T[3,6] - i[9,1]{0,2} > T[9,1,6] ; K=48 N=6 bits=8 block_size=64", 0},
  {"MatMulExperts", "fb", "T[2,2,32] A[3,4,8]{0,255} T[3,4,2] - i[2,2]{0,2} > T[2,2,4] ; K=32 N=4 bits=2 block_size=16", 0},
  {"MatMulNBits", "fdhb", "T[3,40] A[5,3,8]{0,255} T[5,3] > T[3,5] ; K=40 N=5 block_size=16", 0},
  {"MatMulNBits", "fh", "T[2,7,64] A[9,2,16]{0,255} T[9,2] A[9,1]{0,255} - T[9] > T[2,7,9] ; K=64 N=9 block_size=32", 0},
  {"MatMulNBits", "fd", "T[1,256] A[33,4,64]{0,255} T[132] A[33,4]{0,255} > T[1,33] ; K=256 N=33 block_size=64 bits=8", 0},
  {"MatMulNBits", "fb", "T[5,48] A[6,3,4]{0,255} T[6,3] T[6,3] > T[5,6] ; K=48 N=6 block_size=16 bits=2", 0},
  {"ConvInteger", "A", "T[1,4,6,7]{0,255} T[4,2,3,3]{0,255} > i[1,4,3,3] ; group=2 pads:1,1,1,1 strides:2,3", 13},
  {"MatMulInteger", "aA", "T[5,7]{0,100} T[7,3]{0,100} > i[5,3]", 13},
  {"MatMulInteger", "A", "T[2,5,37]{0,255} T[37,33]{0,255} T[] T[] > i[2,5,33]", 13},
  {"QLinearMatMul", "aA",
   "T[5,37]{0,100} f#0.02 T#3 T[37,9]{0,100} f#0.03 T#4 f#0.5 T#5 > T[5,9]", 13},
  {"QLinearConv", "aA",
   "T[1,3,7,8]{0,100} f#0.02 T#3 T[4,3,3,3]{0,100} f#0.03 T#4 f#0.25 T#5 i[4]{-50,50} > T[1,4,5,6]", 13},
  {"QLinearConv", "A",
   "A[2,4,6,6]{0,255} f#0.02 A#128 a[6,2,3,3]{-90,90} f[6]{0.01,0.05} a=0,0,0,0,0,0 f#0.25 A#100 > A[2,6,6,6] ; group=2 "
   "pads:1,1,1,1", 13},
  {"Einsum", "fdl", "T[3,5] T[5,4] > T[3,4] ; equation\"ij,jk->ik", 13},
  {"Einsum", "f", "T[2,3,4] > T[2,4,3] ; equation\"bij->bji", 13},
  {"Einsum", "f", "T[2,3,4] T[2,4,5] > T[2,3,5] ; equation\"bij,bjk->bik", 13},
  {"Attention", F, "T[1,2,5,8] T[1,2,7,8] T[1,2,7,6] > T[1,2,5,6]", 23},
  {"Attention", "fh", "T[2,5,16] T[2,7,8] T[2,7,8] > T[2,5,16] ; q_num_heads=4 kv_num_heads=2", 23},
  {"Attention", "f", "T[1,2,5,8] T[1,2,5,8] T[1,2,5,8] T[5,5] > T[1,2,5,8] ; scale~0.2", 24},
  {"Attention", "f", "T[1,2,5,8] T[1,2,5,8] T[1,2,5,8] > T[1,2,5,8] ; is_causal=1", 23},
  {"LinearAttention", "f", "T[1,6,16] T[1,6,16] T[1,6,16] > T[1,6,16] T[1,2,8,8] ; q_num_heads=2 kv_num_heads=2 "
   "update_rule'linear", 27},
  {"CausalConvWithState", "f", "T[2,3,9] T[3,1,4] T[3] > T[2,3,9] T[2,3,3]", 27},
  {"DeformConv", "f", "T[1,2,6,6] T[3,2,3,3] T[1,18,4,4] T[3] T[1,9,4,4]{0,1} > T[1,3,4,4]", 19},
  {"DeformConv", "fd", "T[1,2,5,5] T[3,2,2,2] T[1,8,4,4]{-0.4,0.4} T[3] > T[1,3,4,4]", 19},
  {"DFT", "fd", "T[2,9,1] l#1 - > T[2,9,2]", 17}, {"DFT", "fd", "T[2,8,2] - l#1 > T[2,8,2]", 20},
  {"STFT", "fd", "T[1,32,1] l#8 - l#16 > T[1,3,9,2]", 17},
  {"Det", "fd", "T[3,4,4] > T[3]", 13}, {"Det", "f", "T[2,2] > T[]", 13},
  {"RNN", "f", "T[5,2,3] T[1,4,3] T[1,4,4] T[1,8] i=5,2 T[1,2,4] > T[5,1,2,4] T[1,2,4] ; hidden_size=4 direction'reverse", 14},
  {"RNN", "fd", "T[5,2,3] T[1,4,3] T[1,4,4] T[1,8] > T[5,1,2,4] T[1,2,4] ; hidden_size=4", 14},
  {"GRU", "f", "T[5,2,3] T[1,12,3] T[1,12,4] T[1,24] i=5,2 T[1,2,4] > T[5,1,2,4] T[1,2,4] ; hidden_size=4 linear_before_reset=1", 14},
  {"GRU", "fd", "T[5,2,3] T[1,12,3] T[1,12,4] T[1,24] > T[5,1,2,4] T[1,2,4] ; hidden_size=4", 14},
  {"GRU", "f", "T[4,2,3] T[2,12,3] T[2,12,4] > T[4,2,2,4] T[2,2,4] ; hidden_size=4 direction'bidirectional "
   "linear_before_reset=1", 14},
  {"LSTM", "f", "T[5,2,3] T[1,16,3] T[1,16,4] T[1,32] i=5,3 T[1,2,4] T[1,2,4] T[1,12] > T[5,1,2,4] T[1,2,4] T[1,2,4] ; hidden_size=4", 14},
  {"LSTM", "fd", "T[5,2,3] T[1,16,3] T[1,16,4] T[1,32] > T[5,1,2,4] T[1,2,4] T[1,2,4] ; hidden_size=4", 14},
  {"LSTM", "f", "T[4,2,3] T[2,16,3] T[2,16,4] > T[4,2,2,4] - T[2,2,4] ; hidden_size=4 direction'bidirectional", 14},
};
/* clang-format on */

const op_table op_contract = {lines, sizeof lines / sizeof lines[0]};
