package heddle

// Inputs of a run: slices and arrays, in order or by name, to where the executor reads them.

// #include "bridge.h"
import "C"

import (
	"fmt"
	"strings"
)

func (c *Call) setAll(inputs []interface{}) error {
	if len(inputs) == 1 {
		if named, ok := inputs[0].(map[string]interface{}); ok {
			return c.setNamed(named)
		}
	}
	if len(inputs) != len(c.inputs) {
		return invalid(countWords(len(inputs), "input", len(c.inputs)), ": ", strings.Join(c.InputNames(), ", "))
	}
	for i, value := range inputs {
		if err := c.set(i, value); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) setNamed(named map[string]interface{}) error {
	set := 0
	for i := range c.inputs {
		value, ok := named[c.inputs[i].name]
		if !ok {
			return invalid("input '", c.inputs[i].name, "' is missing")
		}
		if err := c.set(i, value); err != nil {
			return err
		}
		set++
	}
	if set == len(named) {
		return nil
	}
	for name := range named {
		known := false
		for i := range c.inputs {
			known = known || c.inputs[i].name == name
		}
		if !known {
			return &Error{Status: ErrNotFound, File: c.about.file, Message: "there is no input '" + name +
				"'; there are: " + strings.Join(c.InputNames(), ", ")}
		}
	}
	return nil
}

func (c *Call) set(i int, value interface{}) error {
	in := &c.inputs[i]
	if in.array != nil {
		err := in.array.CopyFrom(value)
		if err != nil {
			return fmt.Errorf("input '%s': %w", in.name, err)
		}
		return nil
	}
	array, ok := value.(*Array)
	if !ok {
		made, err := in.arrayOf(value)
		if err != nil {
			return fmt.Errorf("input '%s': %w", in.name, err)
		}
		defer made.Close()
		array = made
	}
	if array == nil {
		return invalid("input '", in.name, "' was given a nil *Array")
	}
	return c.setArray(in.index, array)
}

func (c *Call) setArray(index C.uint32_t, array *Array) error {
	if err := array.acquire(); err != nil {
		return err
	}
	defer array.release()
	words := newErr()
	defer freeErr(words)
	if s := C.heddle_executor_set_input(c.e.ex, index, array.t, words); s != C.HEDDLE_OK {
		return c.about.errorOf(s, words)
	}
	return nil
}

// An array of a slice for an input one of whose dimensions is open.
func (s *slot) arrayOf(value interface{}) (*Array, error) {
	e, ok := sliceElements(value)
	if !ok {
		return nil, invalid(fmt.Sprintf("expected a slice of numbers or an *Array, not %T", value))
	}
	shape, open, rest := append([]int64{}, s.shape...), -1, 1
	for d, n := range shape {
		if n >= 0 {
			rest *= int(n)
		} else if open < 0 {
			open = d
		} else {
			open = len(shape)
		}
	}
	if open < 0 || open == len(shape) || rest == 0 || e.count%rest != 0 {
		return nil, invalid(fmt.Sprintf("%d elements leave the shape %v open; give an *Array", e.count, s.shape))
	}
	if s.dtype.Bits != 0 && s.dtype.holds(e.dtype) {
		e.dtype = s.dtype
	}
	shape[open] = int64(e.count / rest)
	return newArray(e, shape)
}
