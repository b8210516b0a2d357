package store

// DefaultPage is the length of a page whose length is not asked for.
const DefaultPage = 100

func pageLimit(asked int64) int64 {
	if asked == 0 {
		return DefaultPage
	}
	return asked
}

// NewPage returns the page after a cursor, of the default length if none is asked for.
func NewPage(after, limit int64) Page { return Page{After: after, Limit: pageLimit(limit)} }

// Ahead is the page and one row more, which tells whether another page follows.
func (p Page) Ahead() Page { return Page{p.After, p.Limit + 1} }

// Cut takes the row that [Page.Ahead] added off again, and returns the cursor
// of the next page, nil at the end.
func Cut[Row any](rows []Row, p Page, cursor func(Row) int64) (items []Row, next *int64) {
	if int64(len(rows)) <= p.Limit {
		return rows, nil
	}
	rows = rows[:p.Limit]
	last := cursor(rows[len(rows)-1])
	return rows, &last
}
