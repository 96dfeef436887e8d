package heddle

// Arrays as text, for fmt.

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

const (
	printAll  = 1000 // as many elements are all printed
	printEdge = 3    // of more, so many at each end of each dimension
)

// String gives the elements as fmt prints nested slices, such as [[1 2 3] [4 5 6]]; of more than 1000 those at the ends of
// each dimension. It reads arrays of any device, which blocks. What cannot be read is described.
func (a *Array) String() string {
	if a == nil {
		return "<nil>"
	}
	values, err := a.AsSlice()
	if err != nil {
		return fmt.Sprintf("<%s%v: %v>", a.dtype, a.shape, err)
	}
	p := printer{values: reflect.ValueOf(values), shape: a.shape, edge: printEdge}
	p.half = a.dtype.Bits == 16 && p.values.Type().Elem().Kind() == reflect.Uint16 && a.dtype.Code == codeOf("float")
	p.brain = a.dtype.Code == codeOf("bfloat")
	count := a.count
	if a.dtype.Lanes > 1 {
		p.shape = append(append([]int64{}, a.shape...), int64(a.dtype.Lanes))
		count *= int(a.dtype.Lanes)
	}
	if count <= printAll {
		p.edge = printAll
	}
	p.print(0, 0)
	return p.out.String()
}

func codeOf(word string) uint8 {
	for _, w := range dtypeWords {
		if w.word == word {
			return w.code
		}
	}
	return 0
}

type printer struct {
	values      reflect.Value
	shape       []int64
	edge        int64
	half, brain bool
	out         strings.Builder
}

// The part of a dimension that begins at an element.
func (p *printer) print(dimension int, first int64) {
	if dimension == len(p.shape) {
		p.element(int(first))
		return
	}
	step := int64(1)
	for _, size := range p.shape[dimension+1:] {
		step *= size
	}
	size := p.shape[dimension]
	p.out.WriteByte('[')
	for i := int64(0); i < size; i++ {
		if i > 0 {
			p.out.WriteByte(' ')
		}
		if i == p.edge && size > 2*p.edge {
			p.out.WriteString("... ")
			i = size - p.edge
		}
		p.print(dimension+1, first+i*step)
	}
	p.out.WriteByte(']')
}

func (p *printer) element(i int) {
	switch v := p.values.Index(i); {
	case p.brain:
		fmt.Fprint(&p.out, math.Float32frombits(uint32(v.Uint())<<16))
	case p.half:
		fmt.Fprint(&p.out, halfValue(uint16(v.Uint())))
	default:
		fmt.Fprint(&p.out, v.Interface())
	}
}

// The number that the bits of a float16 are.
func halfValue(bits uint16) float32 {
	sign, exponent, fraction := float64(1), int(bits>>10&31), float64(bits&1023)
	if bits>>15 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return float32(math.Copysign(math.Ldexp(fraction, -24), sign))
	case 31:
		if fraction != 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return float32(math.Ldexp(sign*(1024+fraction), exponent-25))
}
