package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Runs returns one page of the runs that the store knows, with their counts.
func Runs(tx store.Tx, p *schema.RunsParams) (*schema.RunsPage, error) {
	limit := store.NewPage(0, p.Limit).Limit
	keys, err := tx.Runs(p.After, limit+1)
	if err != nil {
		return nil, err
	}
	page := &schema.RunsPage{}
	if int64(len(keys)) > limit {
		keys = keys[:limit]
		page.Next = &keys[limit-1]
	}
	for _, key := range keys {
		run, err := Run(tx, key)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, *run)
	}
	return page, nil
}

// Run returns one run with its counts, whether or not the store knows it.
func Run(tx store.Tx, key string) (*schema.Run, error) {
	limits, err := tx.Limits(key)
	if err != nil {
		return nil, err
	}
	usage, err := tx.Usage(key)
	return &schema.Run{RunID: key, Limits: limits, Used: usage.Usage}, err
}
