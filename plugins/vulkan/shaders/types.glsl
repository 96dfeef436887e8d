// The type of a variant's elements, by TYPE: S in memory, C in which is computed, U its unsigned kin, in which integers
// wrap, and how one is made of the other. Types of 8 and 16 bits are computed with in 32, which needs nothing of a device
// but that it stores them. With TRUTH results R are bool's bytes.
#define TYPE_F32 0
#define TYPE_I8 1
#define TYPE_I16 2
#define TYPE_I32 3
#define TYPE_I64 4
#define TYPE_U8 5
#define TYPE_U16 6
#define TYPE_U32 7

#if TYPE == TYPE_I8 || TYPE == TYPE_U8 || defined(TRUTH)
#extension GL_EXT_shader_8bit_storage : require
#endif
#if TYPE == TYPE_I16 || TYPE == TYPE_U16
#extension GL_EXT_shader_16bit_storage : require
#endif

#if TYPE == TYPE_F32
#define S float
#define C float
#define U float
#define LOAD(x) x
#define STORE(x) x
#elif TYPE == TYPE_I64
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define S int64_t
#define C int64_t
#define U uint64_t
#define LOAD(x) x
#define STORE(x) x
#elif TYPE == TYPE_U32
#define S uint
#define C uint
#define U uint
#define LOAD(x) x
#define STORE(x) x
#else
#define C int
#define U uint
#if TYPE == TYPE_I32
#define S int
#define LOAD(x) x
#define STORE(x) x
#elif TYPE == TYPE_I8
#define S int8_t
#elif TYPE == TYPE_I16
#define S int16_t
#elif TYPE == TYPE_U8
#define S uint8_t
#elif TYPE == TYPE_U16
#define S uint16_t
#endif
#if TYPE == TYPE_U8 || TYPE == TYPE_U16
#define LOAD(x) int(uint(x))
#define STORE(x) S(uint(x))
#elif TYPE != TYPE_I32
#define LOAD(x) int(x)
#define STORE(x) S(x)
#endif
#endif

#ifdef TRUTH
#define R uint8_t
#else
#define R S
#endif
