package identity

import (
	"errors"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

// Reason returns the reason of a condition for an error on the way to vCenter, empty for errors of another kind.
func Reason(err error) string {
	var (
		missing     *Error
		refused     *vcenter.LoginError
		untrusted   *vcenter.CertificateError
		mismatch    *vcenter.ThumbprintError
		unreachable *vcenter.UnreachableError
	)
	switch {
	case errors.As(err, &missing):
		return infrav1.CredentialsNotAvailableReason
	case errors.As(err, &refused):
		return infrav1.LoginFailedReason
	case errors.As(err, &untrusted):
		return infrav1.CertificateNotTrustedReason
	case errors.As(err, &mismatch):
		return infrav1.ThumbprintMismatchReason
	case errors.As(err, &unreachable):
		return infrav1.VCenterUnreachableReason
	}
	return ""
}
