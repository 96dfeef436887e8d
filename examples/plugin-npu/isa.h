/* isa.h: the instruction set of the accelerator and its sizes; what the machine (machine.c) executes and the compiler
 * (compile.c) writes. README.md describes how the modules work together and what comes from VTA. */
#ifndef NPU_ISA_H
#define NPU_ISA_H

#include <stdint.h>

/* A vector is 16 numbers; the matrix core multiplies a vector of 16 int8 with a tile of 16 x 16 int8 in one cycle. */
#define NPU_LANES 16

/* Sizes of the scratchpads, in their own units. */
#define NPU_INPUT_VECTORS 2048 /* of 16 int8 */
#define NPU_WEIGHT_TILES 1024  /* of 16 x 16 int8: 16 results by 16 operands */
#define NPU_ACC_VECTORS 2048   /* of 16 int32: accumulators, and operands of the vector ALU */

#define NPU_MHZ 100          /* clock: 10 ns a cycle */
#define NPU_START_CYCLES 8   /* from the queue to the first work of an instruction */
#define NPU_MEMORY_CYCLES 24 /* from a request to DRAM to its first word */
#define NPU_BUS_BYTES 16     /* of DRAM in a cycle, where they lie side by side */
#define NPU_LINK_BYTES 64    /* between the host and DRAM in a cycle */

/* The three modules run side by side, each its own instructions in order. They are ordered by tokens alone: a queue
 * of tokens leads from each to each of its neighbours (load - compute - store). */
enum { NPU_LOAD, NPU_COMPUTE, NPU_STORE, NPU_MODULES };

/* Bits of npu_instr.tokens. Before it starts, an instruction takes a token of its neighbour's; when it is done it gives
 * one. PREV is the neighbour towards load, NEXT the one towards store. */
enum { NPU_TAKE_PREV = 1, NPU_TAKE_NEXT = 2, NPU_GIVE_PREV = 4, NPU_GIVE_NEXT = 8 };

enum {
  NPU_OP_NONE = 0,    /* tokens only */
  NPU_OP_LOAD_INPUT,  /* load: a box of vectors from DRAM to the input scratchpad */
  NPU_OP_LOAD_WEIGHT, /* load: whole tiles, side by side in DRAM */
  NPU_OP_LOAD_ACC,    /* compute: vectors of int32 */
  NPU_OP_LOAD_ACC8,   /* compute: vectors of int8, widened */
  NPU_OP_MATMUL,      /* compute: acc += weight tile x input vector */
  NPU_OP_ALU,         /* compute: a vector operation on the accumulators */
  NPU_OP_STORE        /* store: the low byte of accumulators to DRAM */
};

/* npu_instr.alu. B is a vector of accumulators at b, or imm in every lane where NPU_IMMEDIATE is set. SCALE multiplies
 * with the vector at b and divides by two to the power of the vector at b + 1, to the nearest, halves to the even. */
enum { NPU_ALU_SET, NPU_ALU_ADD, NPU_ALU_MAX, NPU_ALU_MIN, NPU_ALU_SHIFT, NPU_ALU_SCALE };

/* npu_instr.flags. FLIP turns the top bit of each byte on its way: uint8 in DRAM, int8 (less 128) inside. CLEAR makes
 * MATMUL write zeros. */
enum { NPU_FLIP = 1, NPU_CLEAR = 2, NPU_IMMEDIATE = 4 };

/* How a box of vectors lies in DRAM: vector (y, x) begins at base + y * step_y + x * step_x, and its lane l is
 * step_lane bytes further each. Lanes from `lanes` on are not there: loaded as 0, not stored. Rows and columns outside
 * [0, rows) and [0, columns) hold pad. */
typedef struct npu_box {
  uint64_t base; /* address in DRAM; until bind: offset in operand `operand` of the region */
  int64_t step_y, step_x, step_lane;
  int32_t y, x;          /* of the first vector; may be outside */
  int32_t rows, columns; /* that are there */
  int32_t n_y, n_x;      /* vectors to move: n_y x n_x */
  int32_t lanes, pad;
  uint32_t operand; /* NPU_OPERAND_*, for bind alone */
  uint32_t reserved;
} npu_box;

/* What bind makes addresses of: the op's own constants, its workspace, its inputs and outputs. */
enum { NPU_OPERAND_CONSTANTS, NPU_OPERAND_WORKSPACE, NPU_OPERAND_FIRST };
#define NPU_OPERAND_INPUT(k) (NPU_OPERAND_FIRST + 2 * (k))
#define NPU_OPERAND_OUTPUT(k) (NPU_OPERAND_FIRST + 2 * (k) + 1)

/* MATMUL and ALU work through three loops; loop i adds step[i] to each index in each of its n[i] rounds. */
typedef struct npu_loops {
  int32_t n[3];
  int32_t acc[3];    /* what is written */
  int32_t input[3];  /* MATMUL: input vectors; ALU: unused */
  int32_t weight[3]; /* MATMUL: weight tiles; ALU: operand b */
  int32_t imm;
} npu_loops;

/* One instruction. VTA packs each into 128 bits; here the fields are plain. */
typedef struct npu_instr {
  uint8_t op, module, tokens, flags;
  uint16_t alu, reserved;
  uint32_t at;     /* first index in the scratchpad that is loaded, computed into or stored from */
  uint32_t input;  /* MATMUL: first input vector */
  uint32_t weight; /* MATMUL: first weight tile; ALU: first vector of b */
  union {
    npu_box box;
    npu_loops loops;
  } u;
} npu_instr;

#endif
