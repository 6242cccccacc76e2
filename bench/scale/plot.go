package main

import (
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// curve is a line of a plot.
type curve struct {
	name   string
	points plotter.XYs
}

func (c *curve) add(x, y float64) { c.points = append(c.points, plotter.XY{X: x, Y: y}) }

// axes say what a plot shows.
type axes struct {
	title, x, y string
	logX, logY  bool
}

// draw writes a plot, if plots were asked for.
func (s *session) draw(file string, a axes, curves ...curve) {
	if s.plots == "" {
		return
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = a.title, a.x, a.y
	p.Add(plotter.NewGrid())
	if a.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if a.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	p.Legend.Top, p.Legend.Left = true, true
	for i, c := range curves {
		line, points, err := plotter.NewLinePoints(c.points)
		if err != nil {
			s.fail(err)
			return
		}
		line.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		line.Dashes = plotutil.Dashes(i)
		points.Shape = draw.CircleGlyph{}
		points.Radius = vg.Points(1.5)
		p.Add(line, points)
		p.Legend.Add(c.name, line)
	}
	if err := os.MkdirAll(s.plots, 0o755); err != nil { //nolint:gosec // documents of the repository
		s.fail(err)
		return
	}
	s.fail(p.Save(18*vg.Centimeter, 11*vg.Centimeter, filepath.Join(s.plots, file)))
	s.drawn = append(s.drawn, file)
}

// lateness is the share of samples that are at most so late, in percent.
func lateness(name string, d durations) curve {
	c := curve{name: name}
	for i := range 101 {
		late := d.quantile(float64(i) / 100)
		c.add(max(late.Seconds()*1e3, .01), float64(i)) // a logarithm has no zero
	}
	return c
}
