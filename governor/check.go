package governor

import (
	"errors"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Check says what [Reserve] would answer now, with every obstacle and the
// charge. It changes nothing and promises nothing: another host may be faster.
func Check(tx store.Tx, p *schema.ReserveParams) (*schema.CheckResult, error) {
	f, err := gather(tx, p)
	var refusal *schema.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code == schema.ErrGovernorConflict:
		return &schema.CheckResult{Obstacles: []schema.Obstacle{obstacle(refusal)}}, nil
	case err != nil:
		return nil, err
	case f.existing != nil:
		return &schema.CheckResult{Admissible: true, Replay: &f.existing.Reservation}, nil
	}
	result := &schema.CheckResult{Charge: &schema.Charge{
		ReworkGeneration: f.task.EvidenceGeneration, RetryCharge: f.charge(), RetryTotal: f.admissions.Charged,
	}}
	for _, refusal := range f.decide() {
		if err := explain(tx, p.RunID, refusal); err != nil {
			return nil, err
		}
		result.Obstacles = append(result.Obstacles, obstacle(refusal))
	}
	result.Admissible = len(result.Obstacles) == 0
	return result, nil
}

func obstacle(refusal *schema.Error) schema.Obstacle {
	return schema.Obstacle{Message: refusal.Message, ErrorData: refusal.Data()}
}
